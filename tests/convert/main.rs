//! Traces of one format, written as another: what trace_processor shows of both.

mod json;
