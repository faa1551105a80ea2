"""What is wrong with a live cluster after it was attacked."""

from support.live_cluster import INTERRUPTED, LiveCluster

MEMORY_BYTES_MAX = 1024 * 1024 * 1024


def harm_of(cluster: LiveCluster, memory_bytes_max: int = 0) -> list[str]:
    """End a cluster; returns what is wrong with it.

    Args:
        memory_bytes_max: the most that it was seen to use.
    """
    died = cluster.process.poll()
    said = cluster.end()
    harm = [] if died is None else [f"the cluster ended with status {died}: {said.strip()[-300:]}"]
    if died is None and cluster.process.returncode != INTERRUPTED:
        harm.append(f"it ended with status {cluster.process.returncode} after Ctrl-C: {said.strip()[-300:]}")
    if "Traceback" in said:
        harm.append(f"it printed a traceback: {said.strip()[-600:]}")
    if not (cluster.run / "manifest.json").exists():
        harm.append("it left no manifest")
    harm += [f"logged: {line}" for line in cluster.log() if line["level"] == "error"][:5]
    if memory_bytes_max > MEMORY_BYTES_MAX * 1.2:
        harm.append(f"it used {memory_bytes_max} bytes of memory")
    return harm
