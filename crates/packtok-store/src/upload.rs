//! Writes a file of this machine into a store: whole, or not at all.

use std::fs::File;
use std::io::Read;
use std::path::Path as LocalPath;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::multipart::{MultipartStore, PartId};
use object_store::{
    CopyMode, CopyOptions, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions,
    PutPayload,
};

use crate::connect::S3;
use crate::error::{Error, Result};
use crate::location::Location;
use crate::runtime;

/// Length of a part, and the longest file that goes in one piece.
const PART_BYTES: u64 = 16 << 20;
/// Stores take 10,000 parts at most; parts of longer files are longer.
const MOST_PARTS: u64 = 9_000;
/// Parts on their way at once.
const PARTS_AT_ONCE: usize = 4;

/// What becomes of an object that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// It stays, and writing is an error.
    Refuse,
    /// It is replaced, in one moment.
    Replace,
}

impl Location {
    /// Writes a file as this object; `tick` is told the bytes that have been sent so far.
    ///
    /// # Errors
    /// The object exists and is not to be replaced; the file cannot be read; the store refuses it or does not
    /// answer. There is no new object then.
    pub fn upload(
        &self,
        file: &LocalPath,
        if_exists: IfExists,
        tick: &(dyn Fn(u64) + Sync),
    ) -> Result<()> {
        let local = |source| Error::Local {
            path: file.to_owned(),
            source,
        };
        let mut opened = File::open(file).map_err(local)?;
        let bytes = opened.metadata().map_err(local)?.len();
        if if_exists == IfExists::Refuse && self.exists()? {
            return Err(Error::Exists {
                url: self.url().to_owned(),
            });
        }
        let part_bytes = part_bytes(bytes);
        if bytes <= part_bytes {
            let mut content = Vec::with_capacity(bytes as usize);
            opened.read_to_end(&mut content).map_err(local)?;
            return self.put(content, if_exists);
        }
        let mut parts = Parts {
            file: opened,
            rest: bytes,
            part_bytes,
        };
        let parts = std::iter::from_fn(move || parts.next());
        let sent = match &self.store.s3 {
            Some(s3) => runtime::wait(self.upload_to_s3(s3, parts, if_exists, tick)),
            None => runtime::wait(self.upload_aside(parts, if_exists, tick)),
        };
        sent.map_err(|error| match error {
            Sending::Local(source) => local(source),
            Sending::Store(error) => self.if_taken(&error, if_exists),
        })
    }

    fn put(&self, content: Vec<u8>, if_exists: IfExists) -> Result<()> {
        let options = PutOptions {
            mode: match if_exists {
                IfExists::Refuse => PutMode::Create,
                IfExists::Replace => PutMode::Overwrite,
            },
            ..PutOptions::default()
        };
        let objects = &self.store.objects;
        let content = Bytes::from(content);
        let mut num_tries = 0;
        let put = || {
            num_tries += 1;
            objects.put_opts(&self.path, content.clone().into(), options.clone())
        };
        match runtime::wait(runtime::patiently(put)) {
            Ok(_) => Ok(()),
            // The answer to the first try may be what was lost, and not the object.
            Err(_) if num_tries > 1 && self.has(&content) => Ok(()),
            Err(error) => Err(self.if_taken(&error, if_exists)),
        }
    }

    /// Whether the object is there and has this content.
    fn has(&self, content: &Bytes) -> bool {
        let object = async {
            let answer = self.store.objects.get(&self.path).await?;
            answer.bytes().await
        };
        runtime::wait(object).is_ok_and(|found| found == content)
    }

    /// A condition that does not hold means here that somebody else was first.
    fn if_taken(&self, error: &object_store::Error, if_exists: IfExists) -> Error {
        match self.error(error) {
            Error::Changed { url } if if_exists == IfExists::Refuse => Error::Exists { url },
            error => error,
        }
    }

    /// By parts, which become an object only when all are there, and with `If-None-Match: *` only if there is
    /// none by then.
    async fn upload_to_s3(
        &self,
        s3: &S3,
        parts: impl Iterator<Item = std::io::Result<Bytes>> + Send,
        if_exists: IfExists,
        tick: &(dyn Fn(u64) + Sync),
    ) -> std::result::Result<(), Sending> {
        let id = &runtime::patiently(|| s3.plain.create_multipart(&self.path)).await?;
        let sent = async {
            let sending = parts.enumerate().map(|(i, part)| async move {
                let part = part.map_err(Sending::Local)?;
                let len = part.len() as u64;
                let put = || {
                    s3.plain
                        .put_part(&self.path, id, i, PutPayload::from(part.clone()))
                };
                Ok::<_, Sending>((runtime::patiently(put).await?, len))
            });
            let mut sending = stream::iter(sending).buffered(PARTS_AT_ONCE);
            let (mut ids, mut num_bytes): (Vec<PartId>, u64) = (Vec::new(), 0);
            while let Some((part, len)) = sending.try_next().await? {
                ids.push(part);
                num_bytes += len;
                tick(num_bytes);
            }
            let whole = match if_exists {
                IfExists::Refuse => &s3.if_absent,
                IfExists::Replace => &s3.plain,
            };
            let mut num_tries = 0;
            let completed = runtime::patiently(|| {
                num_tries += 1;
                whole.complete_multipart(&self.path, id, ids.clone())
            })
            .await;
            match completed {
                // The answer to the first try may be what was lost, and not the object.
                Err(_) if num_tries > 1 && self.has_bytes(num_bytes).await => Ok(()),
                completed => Ok(completed.map(drop)?),
            }
        }
        .await;
        if sent.is_err() {
            // Parts of uploads that nobody completes cost money; the store may have forgotten this one already.
            let _ = s3.plain.abort_multipart(&self.path, id).await;
        }
        sent
    }

    /// Whether there is an object of this length.
    async fn has_bytes(&self, bytes: u64) -> bool {
        let meta = self.store.objects.head(&self.path).await;
        meta.is_ok_and(|meta| meta.size == bytes)
    }

    /// Under another name, which is then changed on the condition that there is no object of the right one.
    async fn upload_aside(
        &self,
        parts: impl Iterator<Item = std::io::Result<Bytes>> + Send,
        if_exists: IfExists,
        tick: &(dyn Fn(u64) + Sync),
    ) -> std::result::Result<(), Sending> {
        let objects: &dyn ObjectStore = &*self.store.objects;
        let aside = format!("{}.{}.partial", self.path, std::process::id());
        let aside = object_store::path::Path::from(aside);
        let mut upload = objects
            .put_multipart_opts(&aside, PutMultipartOptions::default())
            .await?;
        let sent = async {
            let mut num_bytes = 0;
            for part in parts {
                let part = part.map_err(Sending::Local)?;
                num_bytes += part.len() as u64;
                upload.put_part(PutPayload::from(part)).await?;
                tick(num_bytes);
            }
            upload.complete().await?;
            Ok(())
        }
        .await;
        if sent.is_err() {
            let _ = upload.abort().await;
            return sent;
        }
        let mode = match if_exists {
            IfExists::Refuse => CopyMode::Create,
            IfExists::Replace => CopyMode::Overwrite,
        };
        let options = CopyOptions {
            mode,
            ..CopyOptions::default()
        };
        let copied = objects.copy_opts(&aside, &self.path, options).await;
        let _ = objects.delete(&aside).await;
        Ok(copied?)
    }
}

/// Why a file was not sent.
enum Sending {
    Local(std::io::Error),
    Store(object_store::Error),
}

impl From<object_store::Error> for Sending {
    fn from(error: object_store::Error) -> Self {
        Self::Store(error)
    }
}

/// Length of each part of a file but the last.
fn part_bytes(file_bytes: u64) -> u64 {
    PART_BYTES.max(file_bytes.div_ceil(MOST_PARTS).next_multiple_of(1 << 20))
}

/// A file in parts of equal length.
struct Parts {
    file: File,
    rest: u64,
    part_bytes: u64,
}

impl Parts {
    fn next(&mut self) -> Option<std::io::Result<Bytes>> {
        if self.rest == 0 {
            return None;
        }
        let mut part = vec![0; self.rest.min(self.part_bytes) as usize];
        self.rest -= part.len() as u64;
        Some(self.file.read_exact(&mut part).map(|()| part.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_has_too_many_parts() {
        for bytes in [0, 1, PART_BYTES, 1 << 30, 1 << 40, 5 << 40] {
            let parts = bytes.div_ceil(part_bytes(bytes));
            assert!(parts <= MOST_PARTS, "{bytes} bytes in {parts} parts");
        }
        assert_eq!(part_bytes(1 << 30), PART_BYTES);
    }
}
