/// Decodes `%XX`. Returns `None` if the text is malformed or not UTF-8.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return String::from_utf8(bytes).ok(),
            [b'%', high, low, rest @ ..] => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                bytes.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
                rest
            }
            [b'%', ..] => return None,
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        };
    }
}

/// Encodes everything but letters, digits and `-._~`.
pub(super) fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_again() {
        for text in ["", "a b/ü%", "\u{202e}\0", "~-._"] {
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        }
        for wrong in ["%", "%1", "%zz", "%ff", "a%+1"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
