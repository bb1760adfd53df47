//! Measures the speed of reading a trace, and of writing it in a format.
//!
//! `speed TRACE [fxt|pftrace|json]` measures, `speed make TRACE.fxt MIB` writes a trace for it, and
//! `speed threads TRACE.fxt NUMBER` one with a slice for each of many threads.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use hairline_convert::{BriefUse, Context, FileFormat, Item, MOST_BRIEF, TraceFormat, create, open};
use hairline_formats::fxt::{self, EventKind, StringRef, ThreadRef};
use hairline_formats::{Value, truncate_utf8};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["make", path, mib] => make(path, mib.parse()?)?,
        ["threads", path, number] => threads(path, number.parse()?)?,
        [path] => measure(path, None)?,
        [path, extension] => {
            let kind = FileFormat::by_name(format!("x.{extension}").as_ref()).ok_or("an unknown format")?;
            measure(path, Some(kind.format))?;
        }
        _ => return Err("what is asked for? See the top of the source".into()),
    }
    Ok(())
}

fn measure(path: &str, to: Option<TraceFormat>) -> Result<(), Box<dyn std::error::Error>> {
    let mut context = Context::new();
    let mut reader = open(File::open(path)?, None)?;
    let mut writer = to.map(|format| create(format, io::sink()));
    let (mut events, mut tracks) = (0_u64, 0_u64);
    // Without a writer the trace is read as by a command that counts its events.
    let wanted = if to.is_none() { BriefUse::Counting } else { BriefUse::Writing };
    let mut briefs = Vec::with_capacity(MOST_BRIEF);
    loop {
        reader.briefs(wanted, &mut context, &mut briefs);
        events += briefs.len() as u64;
        if let Some(writer) = &mut writer {
            writer.write_briefs(&briefs, &context.strings)?;
        }
        // By reference, because an item is large.
        let next = reader.next(&mut context);
        let item = match &next {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(e) => return Err(e.to_string().into()),
        };
        events += u64::from(matches!(item, Item::Event(_)));
        tracks += u64::from(matches!(item, Item::Track(_)));
        if let Some(writer) = &mut writer {
            writer.write(item)?;
        }
    }
    if let Some(writer) = &mut writer {
        writer.finish()?;
        writer.report().iter().for_each(|(what, count)| println!("written: {count} {what}"));
    }
    reader.report().iter().for_each(|(what, count)| println!("read: {count} {what}"));
    let (elapsed, bytes) = (processor_time(), std::fs::metadata(path)?.len());
    println!(
        "{:.0} MB/s, {:.0} ns an event: {events} events and {tracks} tracks in {elapsed:.2} s; {}",
        bytes as f64 / elapsed / 1e6,
        elapsed * 1e9 / events.max(1) as f64,
        peak_memory(),
    );
    Ok(())
}

/// The CPU time of the process in seconds, which other programs do not affect.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns: f64 = stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(f64::NAN);
    ns / 1e9
}

/// The peak memory of the process.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    format!("{} at most", peak.unwrap_or(" unknown memory").trim())
}

/// Writes scopes of eight threads, one in four with two arguments, and some counter values.
fn make(path: &str, mib: u64) -> io::Result<()> {
    let (mut file, mut out) = (BufWriter::new(File::create(path)?), Vec::new());
    fxt::magic(&mut out);
    fxt::provider_info(&mut out, 1, "speed");
    fxt::initialization(&mut out, 1_000_000_000);
    let long = "abcdefghijklmnopqrstuvwxyz".repeat(2);
    for index in 1..=1000_u16 {
        let text = format!("{index} {}", truncate_utf8(&long, usize::from(index) % 40));
        fxt::string_record(&mut out, index, &text);
    }
    let (mut time, mut random) = (1_000_000_u64, 1_u64);
    let mut written = 0;
    while written < mib << 20 {
        let thread = 1 + random % 8;
        fxt::thread_record(&mut out, 1, 77, 100 + thread);
        for n in 0..1000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n);
            let name = StringRef::Index((random >> 40) as u16 % 1000 + 1);
            let args = [
                (StringRef::Index(1), Value::I64(time.cast_signed())),
                (StringRef::Index(2), Value::Str("sixteen bytes !!")),
            ];
            let mut put = |kind, args, payload| {
                time += random >> 56;
                let (thread, category) = (ThreadRef::Index(1), StringRef::Index(3));
                fxt::event(
                    &mut out,
                    &fxt::Event { kind, timestamp: time, thread, category, name, args, payload },
                );
            };
            if n % 16 == 0 {
                put(EventKind::Counter, &args[..1], Some(0));
            }
            put(EventKind::DurationBegin, if n % 4 == 0 { &args } else { &[] }, None);
            put(EventKind::DurationEnd, &[], None);
        }
        file.write_all(&out)?;
        written += out.len() as u64;
        out.clear();
    }
    file.flush()
}

/// Writes a slice for each of many threads.
fn threads(path: &str, number: u64) -> io::Result<()> {
    let (mut file, mut out) = (BufWriter::new(File::create(path)?), Vec::new());
    fxt::magic(&mut out);
    fxt::provider_info(&mut out, 1, "speed");
    fxt::initialization(&mut out, 1_000_000_000);
    fxt::string_record(&mut out, 1, "work");
    for thread in 0..number {
        fxt::thread_record(&mut out, 1, 77, 100 + thread);
        for (kind, time) in [(EventKind::DurationBegin, 1_000), (EventKind::DurationEnd, 1_500)] {
            let (category, name) = (StringRef::Empty, StringRef::Index(1));
            let (thread, timestamp) = (ThreadRef::Index(1), 1_000 * number + time);
            let (args, payload) = (&[], None);
            fxt::event(&mut out, &fxt::Event { kind, timestamp, thread, category, name, args, payload });
        }
        file.write_all(&out)?;
        out.clear();
    }
    file.flush()
}
