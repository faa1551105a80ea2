"""What is wrong with a live cluster after it was attacked."""

from support.live_cluster import INTERRUPTED, LiveCluster

MEMORY_BYTES_MAX = 1024 * 1024 * 1024


def impact_of(cluster: LiveCluster, memory_bytes_max: int = 0) -> list[str]:
    """End a cluster; returns what is wrong with it.

    Args:
        memory_bytes_max: the most that it was seen to use.
    """
    died = cluster.process.poll()
    answer = cluster.end()
    impact = [] if died is None else [f"the cluster ended with status {died}: {answer.strip()[-300:]}"]
    if died is None and cluster.process.returncode != INTERRUPTED:
        impact.append(f"it ended with status {cluster.process.returncode} after Ctrl-C: {answer.strip()[-300:]}")
    if "Traceback" in answer:
        impact.append(f"it printed a traceback: {answer.strip()[-600:]}")
    if not (cluster.run / "manifest.json").exists():
        impact.append("it left no manifest")
    impact += [f"logged: {line}" for line in cluster.log() if line["level"] == "error"][:5]
    if memory_bytes_max > MEMORY_BYTES_MAX * 1.2:
        impact.append(f"it used {memory_bytes_max} bytes of memory")
    return impact
