//! The processors of the machine.

/// Returns the numbers of the processors that are online. At least one.
#[must_use]
pub fn online_cpus() -> Vec<u32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    parse(&list).unwrap_or_else(|| {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (0..u32::try_from(count).unwrap_or(1)).collect()
    })
}

/// The most processors that a list is believed to have.
const MOST: u32 = 1 << 16;

/// Parses `0-3,6`.
fn parse(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_numbers_and_ranges() {
        assert_eq!(parse("0-3,6\n"), Some(vec![0, 1, 2, 3, 6]));
        assert_eq!(parse("0\n"), Some(vec![0]));
        for bad in ["", "x", "0-", "-1", "0-99999999", "3-1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert!(!online_cpus().is_empty());
    }
}
