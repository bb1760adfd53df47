"""Checks of spans of `tracing`: lives on tracks of their own, entries on threads, arrows between these."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from judge import expect

SLICES = """
select s.id, s.ts, s.dur, s.name, s.parent_id, s.track_id in (select id from thread_track),
  track.name, above.name,
  (select display_value from args a where a.arg_set_id = s.arg_set_id and a.key in ({keys}))
from slice s join track on track.id = s.track_id left join track above on above.id = track.parent_id
where s.name in ({names}) order by s.ts"""
ARROWS = "select slice_out, slice_in from flow"
# Slices that have no end, and slices that are not inside of their parent.
OUTSIDE = """
select count(*) from slice s left join slice p on p.id = s.parent_id
where s.dur < 0 or s.ts < p.ts or s.ts + s.dur > p.ts + p.dur"""


@dataclass
class Slice:
    id: int
    ts: int
    dur: int
    name: str
    parent: int
    on_thread: bool
    track: str
    track_above: str
    key: str            # the argument that names the span's instance, such as its number

    @property
    def end(self):
        return self.ts + self.dur


class Spans:
    """The spans of some names in a trace. `keys` are the arguments by which a span's life is recognised."""

    def __init__(self, judge, trace, names, keys):
        quoted = lambda texts: ", ".join(f"'{text}'" for text in texts)
        # FXT has arguments under their own names, and on async tracks below `debug`.
        both = [form for key in keys for form in (key, f"debug.{key}")]
        sql = SLICES.format(names=quoted(names), keys=quoted(both))
        rows, arrows, [[outside]] = judge.ask(trace, sql, ARROWS, OUTSIDE)
        expect(outside == 0, f"{outside} slices without an end, or not inside of their parent")
        self.slices = [Slice(*row) for row in rows]
        self.by_id = {s.id: s for s in self.slices}
        self.entries = defaultdict(list)
        self.lives = defaultdict(list)
        for s in self.slices:
            (self.entries if s.on_thread else self.lives)[s.name].append(s)
        self.arrows = [tuple(row) for row in arrows]

    def lives_once(self, name, instances, mode):
        """Each instance has exactly one life; in the mode `auto`, one that never waited has an entry."""
        found = Counter(s.key for s in self.lives[name])
        entered = Counter(s.key for s in self.entries[name] if s.key is not None)
        for instance in instances:
            once = found[instance] == 1 or mode == "auto" and found[instance] == 0 and entered[instance] == 1
            entries = f"{entered[instance]} entries with its fields"
            expect(once, f"{name} {instance}: {found[instance]} lives, {entries}")
        expect(set(found) | set(entered) <= set(instances), f"{name}: nobody made some of its spans")

    def lives_within(self, child, parent, parent_of=lambda key: key):
        """Each life of `child` is, in time and on the tracks, below the life of its own `parent`."""
        parents = {s.key: s for s in self.lives[parent]}
        expect(self.lives[child], f"{child}: no life")
        for s in self.lives[child]:
            above = parents.get(parent_of(s.key))
            expect(above is not None, f"{child} {s.key}: no {parent} above it")
            inside = above.ts <= s.ts and s.end <= above.end
            expect(inside, f"{child} {s.key} is not within its {parent}")
            placed = s.parent == above.id or (s.parent is None and s.track_above == above.track)
            expect(placed, f"{child} {s.key} is not below its {parent}")

    def entries_within(self, child, parent):
        """Each entry of `child` is a slice right below one of `parent`; with None, below nothing."""
        for s in self.entries[child]:
            above = self.by_id.get(s.parent)
            name = above.name if above else s.parent
            expect(name == parent, f"an entry of {child} at {s.ts} is below {name}, not {parent}")

    def entries_are_polls(self, name, polls):
        """A slice on a thread for each poll. A drop that took long, or in which the drain looked at the chunk,
        has one too: one in a hundred at most."""
        entries = len(self.entries[name])
        expect(polls <= entries <= polls * 1.01 + 1, f"{name}: {entries} entries of {polls} polls")

    def arrows_link_polls(self, name, spans, mode):
        """The entries of each span form a chain of arrows: one less than there are entries. In the mode `auto` a second
        entry may have none: that of a drop, which `entries_are_polls` tells of, where the callsite's spans do not wait;
        and that of the first spans that wait after all, if the first 32 did not."""
        next_of, before = {}, {}
        own = {s.id: s for s in self.entries[name]}
        for out, into in self.arrows:
            if out in own and into in own:
                expect(out not in next_of and into not in before, f"{name}: arrows fork")
                expect(own[out].end <= own[into].ts, f"{name}: an arrow leads back")
                next_of[out], before[into] = into, out
        chains = len(own) - len(next_of)
        has_all = chains == spans or mode == "auto" and spans < chains <= spans * 1.01 + 1
        expect(has_all, f"{name}: {len(next_of)} arrows between {len(own)} polls of {spans} lives")
