"""Family epoch_file: `EpochFileCache` and its `CheckpointFile`."""

from conformance.executing import Adapter
from nodes.broker.tables.ha.epoch_file import OPEN, EpochFile


class EpochFiles(Adapter):
    def __init__(self):
        self.epochs = EpochFile()

    def tables(self):
        text = {"file": {"text": self.epochs.text}} if self.epochs.text is not None else {}
        return {"entries": {str(entry.epoch): shown(entry)[1:] for entry in self.epochs.entries}, **text}

    def append(self, epoch, start):
        return {"ok": self.epochs.append(epoch, start)}

    def query(self, epoch, offset):
        epochs = self.epochs
        return {
            "first": shown(epochs.entries[0] if epochs.entries else None),
            "last": shown(epochs.last),
            "lastEpoch": epochs.last_epoch,
            "size": len(epochs.entries),
            "get": shown(epochs.get(epoch)),
            "next": shown(epochs.after(epoch)),
            "byOffset": shown(epochs.at(offset)),
        }

    def set_last_end(self, end):
        self.epochs.end_last(end)

    def truncate_suffix_by_epoch(self, epoch):
        self.epochs.truncate_from_epoch(epoch)

    def truncate_suffix_by_offset(self, offset):
        self.epochs.truncate_from(offset)

    def truncate_prefix_by_offset(self, offset):
        self.epochs.truncate_up_to(offset)

    def reload_from_file(self):
        self.epochs = EpochFile(self.epochs.text)
        return {"ok": True}

    def init_from_entries(self, entries):
        self.epochs = EpochFile.of(entries)

    def consistent_point(self, local_end, master, master_end):
        mine = self.epochs.with_end(local_end)
        others = EpochFile.of(master).with_end(master_end)
        point = mine.consistent_point(others)
        return {
            "point": -1 if point is None else point,
            "local": [shown(entry) for entry in mine.entries],
            "masterEntries": [shown(entry) for entry in others.entries],
        }


def shown(entry):
    return entry and [entry.epoch, entry.start_offset, "max" if entry.end_offset == OPEN else entry.end_offset]
