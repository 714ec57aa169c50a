//! Suggestions for misspelled words ("Did you mean ...?").

/// Longest word for which suggestions are computed: no name here is longer, and the edit distance
/// takes quadratic time.
const LONGEST: usize = 64;

/// Returns the candidate that `word` most likely misspells; the first of equals.
#[must_use]
pub fn suggest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let normal = |text: &str| text.to_lowercase().replace('-', "_");
    let wanted = normal(word);
    // One error in a short word, one per three letters of a longer one.
    let tolerated = (wanted.chars().count() / 3).max(1);
    let mut best = None;
    for candidate in candidates {
        let candidate_normal = normal(candidate);
        let distance = strsim::osa_distance(&wanted, &candidate_normal);
        // At least one letter must be the same: "x" does not suggest "a".
        let longer = wanted.chars().count().max(candidate_normal.chars().count());
        if distance < longer
            && distance <= tolerated
            && best.is_none_or(|(least, _)| distance < least)
        {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::suggest;

    #[test]
    fn misspellings_are_corrected_and_other_words_are_not() {
        let names = ["congestion_control", "recovery", "mss", "nagle"];
        assert_eq!(
            suggest("congestion_controll", names),
            Some("congestion_control")
        );
        assert_eq!(
            suggest("congestion-control", names),
            Some("congestion_control")
        );
        assert_eq!(suggest("MSS", names), Some("mss"));
        assert_eq!(suggest("angle", names), Some("nagle"));
        assert_eq!(suggest("colour", names), None);
        assert_eq!(suggest(&"n".repeat(100), names), None);
        assert_eq!(suggest("x", ["a", "b"]), None);
        assert_eq!(suggest("x", ["ax"]), Some("ax"));
    }
}
