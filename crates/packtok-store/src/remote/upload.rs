//! Uploads a local file to a store, completely or not at all.

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

use crate::remote::connect::S3;
use crate::remote::error::{Error, Result};
use crate::remote::location::Location;
use crate::remote::runtime;

/// Length of a part. Files up to this length are uploaded in one request.
const PART_BYTES: u64 = 16 << 20;
/// Stores accept at most 10,000 parts; larger files use larger parts.
const MOST_PARTS: u64 = 9_000;
/// Number of parts in flight.
const PARTS_AT_ONCE: usize = 4;

/// The action if the object already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// The existing object stays, and the upload fails.
    Refuse,
    /// The existing object is replaced atomically.
    Replace,
}

impl Location {
    /// Uploads a file as this object; `tick` receives the bytes sent so far.
    ///
    /// # Errors
    /// The object exists and must not be replaced; the file cannot be read; the store rejects the
    /// request or does not answer. In all cases no new object exists.
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
        self.start_thread()?;
        let sent = match &self.store.s3 {
            Some(s3) => runtime::wait(self.upload_to_s3(s3, parts, if_exists, tick)),
            None => runtime::wait(self.upload_and_copy(parts, if_exists, tick)),
        };
        sent.map_err(|error| match error {
            Sending::Local(source) => local(source),
            Sending::Store(error) => self.if_taken(&error, if_exists),
        })
    }

    fn put(&self, content: Vec<u8>, if_exists: IfExists) -> Result<()> {
        self.start_thread()?;
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
        match runtime::wait(runtime::retried(put)) {
            Ok(_) => Ok(()),
            // The first attempt may have succeeded and only its answer was lost.
            Err(_) if num_tries > 1 && self.has(&content) => Ok(()),
            Err(error) => Err(self.if_taken(&error, if_exists)),
        }
    }

    /// Whether the object exists with this content.
    fn has(&self, content: &Bytes) -> bool {
        let object = async {
            let answer = self.store.objects.get(&self.path).await?;
            answer.bytes().await
        };
        runtime::wait(object).is_ok_and(|stored| stored == content)
    }

    /// Maps a failed condition to `Exists`: another writer was first.
    fn if_taken(&self, error: &object_store::Error, if_exists: IfExists) -> Error {
        match self.error(error) {
            Error::Changed { url } if if_exists == IfExists::Refuse => Error::Exists { url },
            error => error,
        }
    }

    /// Multipart upload. The parts become an object only on completion, which carries
    /// `If-None-Match: *` if the object must not exist.
    async fn upload_to_s3(
        &self,
        s3: &S3,
        parts: impl Iterator<Item = std::io::Result<Bytes>> + Send,
        if_exists: IfExists,
        tick: &(dyn Fn(u64) + Sync),
    ) -> std::result::Result<(), Sending> {
        let id = &runtime::retried(|| s3.plain.create_multipart(&self.path)).await?;
        let sent = async {
            let sending = parts.enumerate().map(|(i, part)| async move {
                let part = part.map_err(Sending::Local)?;
                let len = part.len() as u64;
                let put = || {
                    s3.plain
                        .put_part(&self.path, id, i, PutPayload::from(part.clone()))
                };
                Ok::<_, Sending>((runtime::retried(put).await?, len))
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
            let completed = runtime::retried(|| {
                num_tries += 1;
                whole.complete_multipart(&self.path, id, ids.clone())
            })
            .await;
            match completed {
                // The first attempt may have succeeded and only its answer was lost.
                Err(_) if num_tries > 1 && self.has_bytes(num_bytes).await => Ok(()),
                completed => Ok(completed.map(drop)?),
            }
        }
        .await;
        if sent.is_err() {
            // Incomplete uploads cost money. The abort may fail because the store has already
            // removed this upload.
            let _ = s3.plain.abort_multipart(&self.path, id).await;
        }
        sent
    }

    /// Whether an object of this length exists.
    async fn has_bytes(&self, bytes: u64) -> bool {
        let meta = self.store.objects.head(&self.path).await;
        meta.is_ok_and(|meta| meta.size == bytes)
    }

    /// Uploads under a temporary name, then copies the object to its final name. If required, the
    /// copy carries the condition that the final name does not exist.
    async fn upload_and_copy(
        &self,
        parts: impl Iterator<Item = std::io::Result<Bytes>> + Send,
        if_exists: IfExists,
        tick: &(dyn Fn(u64) + Sync),
    ) -> std::result::Result<(), Sending> {
        let objects: &dyn ObjectStore = &*self.store.objects;
        let temporary = format!("{}.{}.partial", self.path, std::process::id());
        let temporary = object_store::path::Path::from(temporary);
        let mut upload = objects
            .put_multipart_opts(&temporary, PutMultipartOptions::default())
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
        let copied = objects.copy_opts(&temporary, &self.path, options).await;
        let _ = objects.delete(&temporary).await;
        Ok(copied?)
    }
}

/// The reason why an upload failed.
enum Sending {
    Local(std::io::Error),
    Store(object_store::Error),
}

impl From<object_store::Error> for Sending {
    fn from(error: object_store::Error) -> Self {
        Self::Store(error)
    }
}

/// Length of each part of a file except the last.
fn part_bytes(file_bytes: u64) -> u64 {
    PART_BYTES.max(file_bytes.div_ceil(MOST_PARTS).next_multiple_of(1 << 20))
}

/// A file divided into parts of equal length.
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
