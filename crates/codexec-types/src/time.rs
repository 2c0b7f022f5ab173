//! Formatting and parsing of times in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY_S: i64 = 86_400;

/// Formats a time like `2026-02-09T14:30:01.123Z`.
pub fn format_rfc3339(moment: SystemTime) -> String {
    let ms = unix_ms(moment);
    let (days, in_day) = (ms.div_euclid(DAY_S * 1_000), ms.rem_euclid(DAY_S * 1_000));
    let (year, month, day) = civil_from_days(days);
    let (seconds, millis) = (in_day / 1_000, in_day % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Formats a date like `2026-02-09`.
pub fn format_utc_day(moment: SystemTime) -> String {
    let (year, month, day) = civil_from_days(unix_ms(moment).div_euclid(DAY_S * 1_000));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Parses `2026-02-09`, `2026-02-09T14:30:01Z`, and the same with a fraction or an offset from UTC.
/// Returns `None` for anything else, including dates that do not exist.
pub fn parse_time(text: &str) -> Option<SystemTime> {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (text.get(..at)?, Some(text.get(at + 1..)?)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = parse_digits(parts.next()?, 4)?;
    let month = parse_digits(parts.next()?, 2)?;
    let day = parse_digits(parts.next()?, 2)?;
    let days = days_from_civil(year, month, day);
    if parts.next().is_some() || civil_from_days(days) != (year, month, day) {
        return None;
    }
    let in_day_ms = time.map_or(Some(0), parse_time_of_day_ms)?;
    let ms = days * DAY_S * 1_000 + in_day_ms;
    let away = Duration::from_millis(ms.unsigned_abs());
    if ms < 0 { UNIX_EPOCH.checked_sub(away) } else { UNIX_EPOCH.checked_add(away) }
}

/// Returns the milliseconds since 1970, negative for times before.
pub fn unix_ms(moment: SystemTime) -> i64 {
    let clamped = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match moment.duration_since(UNIX_EPOCH) {
        Ok(since) => clamped(since),
        Err(before) => -clamped(before.duration()),
    }
}

pub fn from_unix_ms(ms: i64) -> SystemTime {
    let away = Duration::from_millis(ms.unsigned_abs());
    let moment = if ms < 0 { UNIX_EPOCH.checked_sub(away) } else { UNIX_EPOCH.checked_add(away) };
    moment.unwrap_or(UNIX_EPOCH)
}

fn parse_time_of_day_ms(text: &str) -> Option<i64> {
    let (text, offset_min) = split_offset(text)?;
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let hour = parse_digits(parts.next()?, 2)?;
    let minute = parse_digits(parts.next()?, 2)?;
    let second = parts.next().map_or(Some(0), |second| parse_digits(second, 2))?;
    let is_clock = parts.next().is_none() && hour < 24 && minute < 60 && second < 61;
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
    if !is_clock || !is_fraction {
        return None;
    }
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let ms = thousandths.parse::<i64>().ok()?;
    Some(((hour * 60 + minute - offset_min) * 60 + second) * 1_000 + ms)
}

/// Splits off the offset, in minutes east of UTC. A time without an offset is UTC.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(text) = text.strip_suffix(['Z', 'z']) {
        return Some((text, 0));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let (clock, offset) = text.split_at(at);
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let minutes = parse_digits(hours, 2)? * 60 + parse_digits(minutes, 2)?;
    Some((clock, if offset.starts_with('-') { -minutes } else { minutes }))
}

fn parse_digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Converts days since 1970 to year, month and day. Years begin in March here, so that the leap day
/// is the last.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

#[cfg(test)]
mod tests;
