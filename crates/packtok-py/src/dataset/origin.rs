//! `Origin`: where a document of a pbin came from.

use packtok_corpus::offset_unit;
use packtok_pack::pbin::{self, Reader};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::boundary::error::pbin_error;

/// Where a document came from: the record in its source.
#[pyclass(frozen, name = "Origin", module = "packtok")]
pub(crate) struct PyOrigin {
    source: Py<PyString>,
    place: pbin::Origin,
    unit: &'static str,
}

#[pymethods]
impl PyOrigin {
    #[new]
    fn new(source: Py<PyString>, source_index: u64, offset: u64, unit: &str) -> PyResult<Self> {
        let unit = ["byte", "row", "document"]
            .into_iter()
            .find(|known| *known == unit);
        let place = pbin::Origin {
            source: source_index,
            offset,
        };
        let unit =
            unit.ok_or_else(|| PyValueError::new_err("unit: expected byte, row or document"))?;
        Ok(Self {
            source,
            place,
            unit,
        })
    }

    fn __getnewargs__(&self, py: Python<'_>) -> (Py<PyString>, u64, u64, &'static str) {
        (
            self.source(py),
            self.place.source,
            self.place.offset,
            self.unit,
        )
    }

    /// Path of the source, as in `PbinReader.sources`.
    #[getter]
    fn source(&self, py: Python<'_>) -> Py<PyString> {
        self.source.clone_ref(py)
    }

    /// Index of the source in `PbinReader.sources`.
    #[getter]
    fn source_index(&self) -> u64 {
        self.place.source
    }

    /// The start of the record, counted in `unit` from 0. For a compressed source, the position
    /// after decompression.
    #[getter]
    fn offset(&self) -> u64 {
        self.place.offset
    }

    /// The unit of `offset`: "byte", "row" or "document".
    #[getter]
    fn unit(&self) -> &'static str {
        self.unit
    }

    /// `source`, `offset` and `unit` by name, for JSON.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("source", self.source.bind(py))?;
        dict.set_item("offset", self.place.offset)?;
        dict.set_item("unit", self.unit)?;
        Ok(dict)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.place == other.place && self.unit == other.unit
    }

    fn __hash__(&self) -> u64 {
        self.place.source.rotate_left(48) ^ self.place.offset
    }

    fn __str__(&self, py: Python<'_>) -> String {
        format!(
            "{}: {} {}",
            self.source.bind(py),
            self.unit,
            self.place.offset
        )
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let source = self.source.bind(py).repr()?;
        let pbin::Origin {
            source: index,
            offset,
        } = self.place;
        let unit = self.unit;
        Ok(format!(
            "Origin(source={source}, source_index={index}, offset={offset}, unit={unit:?})"
        ))
    }
}

/// The sources of a file as origins name them, read at the first use.
#[derive(Default)]
pub(crate) struct OriginSources(PyOnceLock<Vec<(Py<PyString>, &'static str)>>);

impl OriginSources {
    /// The origin of document `i` of `reader`; None if the file does not record origins.
    pub(crate) fn origin(
        &self,
        py: Python<'_>,
        reader: &Reader,
        i: u64,
    ) -> PyResult<Option<PyOrigin>> {
        let Some(place) = reader.origin(i).map_err(pbin_error)? else {
            return Ok(None);
        };
        let sources = self.0.get_or_try_init(py, || named(py, reader))?;
        let source = usize::try_from(place.source).ok();
        let (source, unit) = source
            .and_then(|source| sources.get(source))
            .ok_or_else(|| pbin_error(reader.damaged_origin(i)))?;
        Ok(Some(PyOrigin {
            source: source.clone_ref(py),
            place,
            unit,
        }))
    }
}

fn named(py: Python<'_>, reader: &Reader) -> PyResult<Vec<(Py<PyString>, &'static str)>> {
    let sources = py.detach(|| reader.sources()).map_err(pbin_error)?;
    let named = sources.into_iter().map(|source| {
        let path = PyString::new(py, &source.path).unbind();
        (path, source.format.map_or("byte", offset_unit))
    });
    Ok(named.collect())
}
