//! What is left of a trace when its process is killed, aborts or crashes, and what recovery makes of it.

mod blocking;
mod closed;
mod commands;
mod crowds;
mod ends;
mod forking;
mod forks;
mod hostile;
mod kept;
mod listening;
mod lives;
mod moments;
mod names;
mod namespaces;
mod others;
mod outputs;
mod privilege;
mod program;
mod restart;
mod restarts;
mod rotated_jobs;
mod rotation;
mod starts;
mod strangers;
mod torture;
mod unloaded;
