//! All code points, random mixtures of lengths, surrogates, and each way of converting against `char`.

use proptest::prelude::*;

use super::*;

/// The UTF-8 of `code_points` in each width that holds them, also without vectors.
fn check(code_points: &[u32]) {
    let valid: Result<String, usize> = code_points
        .iter()
        .enumerate()
        .map(|(at, &code_point)| char::from_u32(code_point).ok_or(at))
        .collect();
    let most = code_points.iter().max().copied().unwrap_or(0);
    let one: Vec<u8> = code_points.iter().map(|&unit| unit as u8).collect();
    let two: Vec<u16> = code_points.iter().map(|&unit| unit as u16).collect();
    let mut all = vec![(CodePoints::Four(code_points), plain(code_points))];
    if most <= 0xffff {
        all.push((CodePoints::Two(&two), plain(&two)));
    }
    if most <= 0xff {
        all.push((CodePoints::One(&one), plain(&one)));
    }
    for (units, plain) in all {
        let mut text = "before ".to_owned();
        let outcome = units.append_to(&mut text);
        match &valid {
            Ok(valid) => {
                outcome.unwrap();
                assert_eq!(text, format!("before {valid}"));
                assert_eq!(plain.as_deref(), Some(&**valid));
                assert!(valid.len() <= units.max_utf8_bytes());
            }
            Err(first) => {
                assert_eq!(plain, None);
                let Err(EncodeError::NotACharacter {
                    position,
                    code_point,
                }) = outcome
                else {
                    panic!("{outcome:?} for {code_points:?}");
                };
                assert_eq!((position, code_point), (*first, code_points[*first]));
                // What was appended before the error is text, too.
                assert!(str::from_utf8(text.as_bytes()).is_ok());
            }
        }
    }
}

/// The UTF-8 without vectors, or None.
fn plain<U: Copy + Into<u32>>(units: &[U]) -> Option<String> {
    let mut text = String::new();
    append(units, &mut text, |_, _| 0).ok()?;
    Some(text)
}

#[test]
fn every_code_point_at_every_position_of_a_group() {
    let thorough = std::env::var_os("PACKTOK_THOROUGH").is_some_and(|set| set == "1");
    for code_point in 0..=0x11_0000u32 {
        // All lengths of UTF-8 begin and end near these.
        let is_near_an_edge = [0, 0x80, 0x100, 0x800, 0xd800, 0xe000, 0x1_0000, 0x11_0000]
            .iter()
            .any(|&edge| code_point.abs_diff(edge) < 40);
        if !thorough && !is_near_an_edge && code_point % 61 != 0 {
            continue;
        }
        for before in [0, 3, 7, 8, 15, 18, 31] {
            for other in ['a', 'я', '語'] {
                let mut code_points = vec![u32::from(other); before];
                code_points.push(code_point);
                code_points.resize(40, u32::from(other));
                check(&code_points);
            }
        }
    }
}

#[test]
fn all_combinations_of_lengths_in_a_group_of_eight() {
    let one_of_each_length = [0x7f, 0x7ff, 0xffff, 0x1_f600];
    for combination in 0..4usize.pow(8) {
        let mut code_points: Vec<u32> = (0..8)
            .map(|lane| one_of_each_length[combination >> (2 * lane) & 3])
            .collect();
        code_points.resize(16, 0x20);
        check(&code_points);
    }
}

proptest! {
    #[test]
    fn any_mixture(
        runs in prop::collection::vec(
            (
                prop_oneof![
                    8 => 0..0x80u32,
                    8 => 0x80..0x100u32,
                    8 => 0x100..0x800u32,
                    8 => 0x800..0xd800u32,
                    1 => 0xd7f0..0xe010u32,
                    8 => 0xe000..0x1_0000u32,
                    4 => 0x1_0000..0x11_0000u32,
                ],
                1..40usize,
            ),
            0..12,
        ),
    ) {
        let code_points: Vec<u32> = runs
            .into_iter()
            .flat_map(|(code_point, len)| std::iter::repeat_n(code_point, len))
            .collect();
        check(&code_points);
    }
}
