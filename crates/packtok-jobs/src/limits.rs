//! The limits that the system sets for this process, for errors about memory and threads.

use std::fmt;
use std::fs;

use rustix::process::{Resource, getrlimit};

/// Displays which limit refuses memory, and the remedy. Needs no memory itself.
pub struct MemoryLimit;

/// Displays which limits refuse a thread, and the remedy.
pub struct ThreadLimits;

/// The memory limits whose excess makes allocations fail: each with its name and its option of
/// `ulimit`, which takes kB.
const OF_MEMORY: [(Resource, &str, &str); 2] = [
    (Resource::As, "address space", "ulimit -v"),
    (Resource::Data, "data", "ulimit -d"),
];

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (resource, what, option) in OF_MEMORY {
            if let Some(bytes) = getrlimit(resource).current {
                let kb = bytes / 1024;
                return write!(
                    f,
                    "this process is limited to {kb} kB of {what} ({option}); raise the limit or lower num_cpus"
                );
            }
        }
        f.write_str(
            "this process has no limit (ulimit -v), so the system has no more; stop other programs or lower num_cpus",
        )
    }
}

impl fmt::Display for ThreadLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processes = getrlimit(Resource::Nproc).current;
        let of_group = pids_of_group();
        let memory = getrlimit(Resource::As).current;
        let limits = [
            processes.map(|max| format!("{max} processes and threads of this user (ulimit -u)")),
            of_group.map(|max| format!("{max} of its control group (pids.max)")),
            memory.map(|max| format!("{} kB of address space (ulimit -v)", max / 1024)),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        match &limits[..] {
            [] => f.write_str("this process has no limit, so the system has no more threads")?,
            limits => write!(f, "the limits are {}", limits.join(", "))?,
        }
        f.write_str("; raise the limit or lower num_cpus")
    }
}

/// Maximum number of processes and threads in the control group of this process; `None` without a
/// limit.
fn pids_of_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let folder = match controllers {
            "" => "/sys/fs/cgroup",
            _ if controllers
                .split(',')
                .any(|controller| controller == "pids") =>
            {
                "/sys/fs/cgroup/pids"
            }
            _ => return None,
        };
        // In a container, the path may be relative to the host. The group of the container is then
        // the root.
        let max = fs::read_to_string(format!("{folder}{path}/pids.max"))
            .or_else(|_| fs::read_to_string(format!("{folder}/pids.max")));
        max.ok()?.trim().parse().ok()
    };
    groups.lines().find_map(of_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_ends_with_a_remedy() {
        assert!(MemoryLimit.to_string().ends_with("lower num_cpus"));
        assert!(ThreadLimits.to_string().ends_with("lower num_cpus"));
    }
}
