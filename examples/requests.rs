//! A client and two servers, three processes: each records a trace of its own, and the arrows of a request go
//! through all of them.
//!
//! ```text
//! cargo run --release -p hairline-examples --example requests -- \
//!     [FOLDER] [--requests N] [--format pftrace|fxt]
//! hairline merge FOLDER/*.pftrace -o requests.pftrace
//! ```
//!
//! ```text
//! client   [ get ]                                            [ got ]
//! front        [ serve                                     ]
//!                [ ask 0 ] [ told ] [ ask 1 ] [ told ]
//! back               [ serve ]          [ serve ]
//! ```
//!
//! HTTP carries the flows, in the header `traceparent`: one from the client to the front and back, and one of
//! the same trace id for each question to the back.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use hairline::{Flow, Session, trace_instant, trace_scope};

/// The questions that the front asks for each request.
const PARTS: u32 = 2;
/// How long the back takes for an answer.
const WORK: Duration = Duration::from_micros(200);
/// A longer line is no request of this program.
const LONGEST_LINE: u64 = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse(env::args().skip(1))?;
    let (role, back) = match &options.role {
        None => ("client", None),
        Some((role, back)) => (role.as_str(), *back),
    };
    let trace = options.folder.join(format!("{role}.{}", options.format));
    let session = Session::builder().output(trace).start()?;
    match (role, back) {
        ("back", _) => serve(role, back_answer)?,
        ("front", Some(back)) => serve(role, |path, flow| front_answer(back, path, flow))?,
        ("client", _) => client(&options)?,
        _ => return Err(format!("unknown role {role}").into()),
    }
    session.stop()?;
    Ok(())
}

fn client(options: &Options) -> Result<(), Box<dyn Error>> {
    let (mut back, address) = options.start("back", None)?;
    let (mut front, address) = options.start("front", Some(address))?;
    for n in 0..options.requests {
        let flow = Flow::new();
        let answer = {
            trace_scope!("client", "get", n, traceparent = flow.to_traceparent(), flow: &flow);
            get(address, &format!("/{n}"), &flow)?
        };
        trace_instant!("client", "got", bytes = answer.len(), end_flow: &flow);
        println!("{answer}");
    }
    // A server ends with its input.
    for server in [&mut front, &mut back] {
        drop(server.stdin.take());
        server.wait()?;
    }
    Ok(())
}

fn front_answer(back: SocketAddr, path: &str, received: &Flow) -> io::Result<String> {
    trace_scope!("front", "serve", path, traceparent = received.to_traceparent(), flow: received);
    let mut answer = format!("{path}:");
    for part in 0..PARTS {
        let flow = received.child();
        let told = {
            trace_scope!("front", "ask", part, traceparent = flow.to_traceparent(), flow: &flow);
            get(back, &format!("{path}/{part}"), &flow)?
        };
        trace_instant!("front", "told", bytes = told.len(), end_flow: &flow);
        let _ = write!(answer, " {told}");
    }
    Ok(answer)
}

fn back_answer(path: &str, received: &Flow) -> io::Result<String> {
    trace_scope!("back", "serve", path, traceparent = received.to_traceparent(), flow: received);
    std::thread::sleep(WORK);
    Ok(path.bytes().map(u64::from).sum::<u64>().to_string())
}

/// Sends a request with the header of the flow. Returns the body of the answer.
fn get(server: SocketAddr, path: &str, flow: &Flow) -> io::Result<String> {
    let mut stream = TcpStream::connect(server)?;
    let mut request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n");
    if let Some(traceparent) = flow.to_traceparent() {
        let _ = write!(request, "traceparent: {traceparent}\r\n");
    }
    stream.write_all(format!("{request}\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?.1;
    Ok(body.to_owned())
}

/// Prints its address, and answers requests on a thread of this name until its standard input ends.
fn serve(name: &str, answer: impl Fn(&str, &Flow) -> io::Result<String> + Sync) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    println!("{address}");
    std::thread::scope(|threads| {
        let server = std::thread::Builder::new().name(name.to_owned()).spawn_scoped(threads, || {
            loop {
                let (stream, _) = listener.accept()?;
                if !serve_one(stream, &answer)? {
                    return Ok(());
                }
            }
        })?;
        io::copy(&mut io::stdin(), &mut io::sink())?;
        TcpStream::connect(address)?; // without a request: the server ends
        server.join().unwrap_or_else(|_| Err(io::Error::other("the server panicked")))
    })
}

/// Returns false for a connection without a request.
fn serve_one(stream: TcpStream, answer: &impl Fn(&str, &Flow) -> io::Result<String>) -> io::Result<bool> {
    let mut lines = BufReader::new((&stream).take(16 * LONGEST_LINE)).lines();
    let Some(first) = lines.next().transpose()? else { return Ok(false) };
    let mut flow = None;
    for line in lines {
        let line = line?;
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("traceparent") => {
                flow = Flow::from_traceparent(value);
            }
            Some(_) => {}
            None => break, // the empty line
        }
    }
    let path = first.split(' ').nth(1).unwrap_or("/");
    let body = answer(path, &flow.unwrap_or_default())?;
    write!(&stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    Ok(true)
}

struct Options {
    folder: PathBuf,
    requests: u32,
    format: String,
    /// The role of a server, and the address of the one behind it.
    role: Option<(String, Option<SocketAddr>)>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options =
            Self { folder: PathBuf::from("."), requests: 3, format: "pftrace".to_owned(), role: None };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--requests" => {
                    options.requests = value()?.parse().map_err(|e| format!("--requests: {e}"))?;
                }
                "--format" => options.format = value()?,
                "--role" => options.role = Some((value()?, None)),
                "--behind" => {
                    let address = value()?.parse().map_err(|e| format!("--behind: {e}"))?;
                    options.role = options.role.map(|(role, _)| (role, Some(address)));
                }
                flag if flag.starts_with('-') => return Err(format!("unknown option {flag}").into()),
                folder => options.folder = folder.into(),
            }
        }
        fs::create_dir_all(&options.folder)?;
        Ok(options)
    }

    /// Starts this program as a server. Returns its address.
    fn start(&self, role: &str, behind: Option<SocketAddr>) -> Result<(Child, SocketAddr), Box<dyn Error>> {
        let mut command = Command::new(env::current_exe()?);
        command.arg(&self.folder).args(["--format", &self.format, "--role", role]);
        if let Some(address) = behind {
            command.args(["--behind", &address.to_string()]);
        }
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = server.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        Ok((server, line.trim().parse().map_err(|e| format!("the address of {role}, {line:?}: {e}"))?))
    }
}
