//! Tests of the format through the public interface: golden files, faults, joins, publication, properties.

mod faults;
mod fixture;
mod golden;
mod joined;
mod properties;
mod published;
