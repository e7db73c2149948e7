//! Measures the speed of a tokenizer's engines on a built-in sample.

use std::time::Instant;

use crate::error::Result;
use crate::options::{EncodeOptions, EngineChoice};
use crate::tokenizer::Tokenizer;

/// Prose, code and eight languages.
const SAMPLE: &str = include_str!("speed_sample.txt");

/// An engine encodes the sample until this many seconds have passed.
const SECONDS: f64 = 0.3;

/// The speed of an engine.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Speed {
    /// The engine, with its version.
    pub engine: String,
    /// Whether this engine serves the tokenizer.
    pub is_used: bool,
    /// Bytes of text per second on one core, after a first pass through the sample.
    pub bytes_per_second: f64,
}

impl Tokenizer {
    /// The speed of the engine that serves this tokenizer, and of the reference engine if that is another one.
    ///
    /// # Errors
    /// The sample cannot be encoded.
    pub fn measured_speeds(&self) -> Result<Vec<Speed>> {
        let mut speeds = vec![self.measured_speed(EngineChoice::Auto)?];
        if self.engine() != self.engine_chosen(EngineChoice::Reference) {
            speeds.push(Speed {
                is_used: false,
                ..self.measured_speed(EngineChoice::Reference)?
            });
        }
        Ok(speeds)
    }

    fn measured_speed(&self, engine: EngineChoice) -> Result<Speed> {
        let options = EncodeOptions {
            engine,
            add_special_tokens: false,
            ..EncodeOptions::default()
        };
        let (mut encoder, mut ids) = (self.encoder(&options)?, Vec::new());
        let mut pass = || -> Result<()> {
            for paragraph in SAMPLE.split("\n\n") {
                ids.clear();
                encoder.encode_into(paragraph, &mut ids)?;
            }
            Ok(())
        };
        pass()?;
        let (started, mut num_passes) = (Instant::now(), 0u32);
        while started.elapsed().as_secs_f64() < SECONDS {
            pass()?;
            num_passes += 1;
        }
        let num_bytes = f64::from(num_passes) * SAMPLE.len() as f64;
        Ok(Speed {
            engine: self.engine_chosen(engine).name().to_owned(),
            is_used: true,
            bytes_per_second: num_bytes / started.elapsed().as_secs_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_measured_once_each() {
        let tokenizer = Tokenizer::builtin("gpt2").unwrap();
        let speeds = tokenizer.measured_speeds().unwrap();
        let used: Vec<bool> = speeds.iter().map(|speed| speed.is_used).collect();
        assert_eq!(used, [true, false]);
        assert_eq!(speeds[0].engine, tokenizer.engine().name());
        assert!(speeds.iter().all(|speed| speed.bytes_per_second > 1000.0));
    }
}
