"""Checks of tasks of `hairline-tokio`: lives, polls, the arrows to these, time in the queue, and waits."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from judge import expect
from spans import ARROWS, OUTSIDE

SLICES = """
select s.id, s.ts, s.dur, s.name, s.category, s.parent_id, s.track_id,
  s.track_id in (select id from thread_track), above.name,
  (select int_value from args a where a.arg_set_id = s.arg_set_id and a.key in ('task', 'debug.task')),
  (select int_value from args a where a.arg_set_id = s.arg_set_id and a.key = 'debug.held_by_task')
from slice s join track on track.id = s.track_id left join track above on above.id = track.parent_id
order by s.ts, s.id"""
COUNTERS = """
select count(distinct t.name), max(value) from counter c join counter_track t on t.id = c.track_id
where t.name in ('queue depth', 'alive tasks')"""
# Of a hundred events, so many may be what preemption or another thread makes of a rare race.
RARE = 100
# Two events that a thread records one after the other are so many ns apart, without preemption.
SOON = 10_000
# Clocks of the trace and of the program may differ by a thousandth, and a time has at most so many ns.
CLOCKS, ROUNDED = 1e-3, 1


@dataclass(eq=False)
class Slice:
    id: int
    ts: int
    dur: int
    name: str
    category: str
    parent: int
    track: int
    on_thread: bool
    track_above: str
    task: int           # the number of the task, of a life
    held_by: int        # the number of the task that holds the lock, of a wait

    @property
    def end(self):
        return self.ts + self.dur

    def has(self, time):
        return self.ts <= time <= self.end


@dataclass(eq=False)
class Task:
    life: Slice
    steps: list         # its spawn, its polls and its wakes, as the arrows connect them
    queued: list = field(default_factory=list)

    def __post_init__(self):
        self.polls = [step for step in self.steps if step.name == self.life.name]

    def poll_at(self, time):
        """The number of the poll in which this time is; none if it is in no poll."""
        number = begun_by(self.polls, time) - 1
        return number if number >= 0 and self.polls[number].has(time) else None


def begun_by(slices, time):
    """How many slices have begun by then. They are in the order of their begins."""
    return bisect_right(slices, time, key=lambda s: s.ts)


def last_begun(slices, time):
    number = begun_by(slices, time)
    return slices[number - 1] if number else None


def often(good, all_of_them, what):
    """Nearly all: what is rare may fail."""
    bad = all_of_them - good
    expect(bad * RARE <= all_of_them, f"{what}: not so {bad} times of {all_of_them}")


class Tasks:
    """The tasks of a trace. `kinds`: what the program counted, by the name of the tasks: how many had so many polls.
    """

    def __init__(self, judge, trace, kinds):
        rows, arrows, [[outside]], [[counters, most]] = judge.ask(trace, SLICES, ARROWS, OUTSIDE, COUNTERS)
        expect(outside == 0, f"{outside} slices without an end, or not inside of their parent")
        expect(counters == 2 and most > 0, "the runtime is not counted")
        self.slices = [Slice(*row) for row in rows]
        self.by_id = {s.id: s for s in self.slices}
        expect(any(s.name == "parked" and s.on_thread for s in self.slices), "no worker is parked")
        self.follow(arrows)
        self.tasks = self.all_tasks()
        self.by_number = {task.life.task: task for task in self.tasks}
        self.check_counts(kinds)
        self.check_polls()
        self.check_queues()

    def follow(self, arrows):
        self.next_of, self.before = {}, {}
        for out, into in arrows:
            expect(out not in self.next_of and into not in self.before, "arrows fork")
            self.next_of[out], self.before[into] = self.by_id[into], self.by_id[out]

    def all_tasks(self):
        """A task for each life: its first time in the queue, below the life, begins at its spawn."""
        lives = {s.id: s for s in self.slices if s.task is not None and not s.on_thread}
        expect(len({life.task for life in lives.values()}) == len(lives), "two lives have one number")
        spawns = defaultdict(list)
        for s in self.slices:
            if s.name == "spawn" and s.category == "task":
                spawns[s.ts].append(s)
        queued = defaultdict(list)
        for s in self.slices:
            if s.name == "queued" and s.category == "task":
                expect(s.parent in lives, f"the queue at {s.ts} is below no life")
                queued[s.parent].append(s)
        tasks = []
        for life in lives.values():
            expect(queued[life.id], f"task {life.task} was never in the queue")
            begin = queued[life.id][0].ts
            # Two threads may have spawned in the same nanosecond.
            own = [spawn for spawn in spawns[begin] if self.next_of[spawn.id].name == life.name]
            expect(own, f"task {life.task} has no spawn")
            spawns[begin].remove(own[0])
            steps = [own[0]]
            while (step := self.next_of.get(steps[-1].id)) is not None:
                steps.append(step)
            tasks.append(Task(life, steps, queued[life.id]))
        expect(not any(spawns.values()), "a spawn of no task")
        return tasks

    def check_counts(self, kinds):
        """Each task of the program has one life, and as many polls as the program counted."""
        found = defaultdict(Counter)
        for task in self.tasks:
            found[task.life.name][len(task.polls)] += 1
        counted, names = defaultdict(Counter), defaultdict(Counter)
        for pattern, polls in kinds.items():
            counted[pattern].update(polls)
            for name in [name for name in found if re.fullmatch(pattern, name)]:
                names[pattern].update(found.pop(name))
        expect(not found, f"tasks that nobody spawned: {list(found)}")
        for pattern in kinds:
            what = f"the program counted {dict(counted[pattern])}, the trace has {dict(names[pattern])}"
            expect(counted[pattern] == names[pattern], f"polls of {pattern}: {what}")

    def check_polls(self):
        """A task lives from its spawn to the end of its last poll. A poll is one slice on a thread, with one arrow,
        from the spawn or from a wake."""
        seen, woken, over = set(), 0, 0
        for task in self.tasks:
            life, polls = task.life, task.polls
            for step, after in zip(task.steps, task.steps[1:]):
                both = (step, after)
                expect(all(s.on_thread for s in both), f"task {life.task}: an arrow to another track")
                expect(after.name in (life.name, "wake"), f"task {life.task}: {after.name} is no step of it")
                expect(step.ts <= after.ts, f"task {life.task}: an arrow leads back")
                woken += after.name == life.name and step.name in ("spawn", "wake")
            for poll, after in zip(polls, polls[1:]):
                expect(poll.end <= after.ts, f"task {life.task}: two polls at a time")
            seen.update(poll.id for poll in polls)
            expect(life.ts <= task.steps[0].ts, f"task {life.task}: its life begins after its spawn")
            expect(polls[-1].end <= life.end, f"task {life.task}: its life ends before its last poll")
            over += life.end - polls[-1].end < SOON
        names = {task.life.name for task in self.tasks}
        polls = {s.id for s in self.slices if s.on_thread and s.name in names}
        expect(polls == seen, f"{len(polls - seen)} polls of no task")
        often(over, len(self.tasks), "the end of a life at the end of its last poll") # else the runtime drops it
        # Two wakes at a time may lead to a poll while the first one is recorded.
        often(woken, len(polls), "an arrow from the spawn or a wake to the poll")

    def check_queues(self):
        """The time in the queue is from the spawn, a wake or the end of a poll to the next poll."""
        polls, queues, begun, ended = 0, 0, 0, 0
        for task in self.tasks:
            steps = {step.ts for step in task.steps}
            own = task.polls
            polls += len(own)
            queues += len(task.queued)
            for queued in task.queued:
                expect(task.life.ts <= queued.ts and queued.end <= task.life.end, f"a queue outside of its life")
                number = begun_by(own, queued.ts)
                expect(number < len(own), f"task {task.life.task}: no poll after the queue at {queued.ts}")
                expect(queued.end <= own[number].ts, f"task {task.life.task}: in the queue while it is polled")
                ended += own[number].ts - queued.end < SOON
                expect(number == 0 or own[number - 1].end <= queued.ts, f"task {task.life.task}: queued in a poll")
                after_poll = number > 0 and queued.ts - own[number - 1].end < SOON
                begun += queued.ts in steps or after_poll
        often(queues, polls, "a poll after a time in the queue")
        often(begun, queues, "the begin of the queue at the spawn, a wake or the end of a poll")
        often(ended, queues, "the end of the queue at the begin of a poll")

    def waits(self, name, of, said):
        """The waits for one lock, semaphore or channel, of tasks of one name: as many and as long as the program
        measured, each within the polls of the one that waits, and below it."""
        count, least, most = said
        waits = [s for s in self.slices if s.name == f"wait: {name}" and not s.on_thread]
        expect(len(waits) == count, f"{name}: {count} waits, in the trace {len(waits)}")
        total = sum(wait.dur for wait in waits)
        low, high = least * (1 - CLOCKS) - count * ROUNDED, most * (1 + CLOCKS) + count * ROUNDED
        expect(low <= total <= high, f"{name}: {least} to {most} ns of waits, in the trace {total}")
        polls_of = defaultdict(list) # of each thread
        task_of = {poll.id: task for task in self.tasks if task.life.name == of for poll in task.polls}
        for s in self.slices:
            if s.id in task_of:
                polls_of[s.track].append(s)
        alone = 0
        for wait in waits:
            expect(wait.track_above == of, f"{wait.name} is below {wait.track_above}, not {of}")
            polls = filter(None, (last_begun(polls, wait.ts) for polls in polls_of.values()))
            waiting = [poll for poll in polls if self.is_between_polls(task_of[poll.id], wait)]
            expect(waiting, f"{wait.name} at {wait.ts}: not from one poll to another one of a {of}")
            alone += len(waiting) == 1
        often(alone, count, f"{name}: a wait of one task")
        return waits

    @staticmethod
    def is_between_polls(task, wait):
        first, last = task.poll_at(wait.ts), task.poll_at(wait.end)
        return first is not None and last is not None and first < last

    def holders(self, waits, holding):
        """While a task holds the lock it has an interval `holding`. A wait that begins then names that task."""
        holds = [s for s in self.slices if s.name == holding and not s.on_thread]
        for hold, after in zip(holds, holds[1:]):
            expect(hold.end <= after.ts, f"two tasks have the lock at {after.ts}")
        named, running, right, held = 0, 0, 0, 0
        for wait in waits:
            task = self.by_number.get(wait.held_by)
            if wait.held_by is not None:
                expect(task and task.life.ts <= wait.ts, f"{wait.name} at {wait.ts}: held by no task")
                named += 1
                running += wait.ts <= task.life.end
            hold = last_begun(holds, wait.ts)
            if hold and hold.has(wait.ts):
                held += 1
                right += task is not None and self.is_between_polls(task, hold)
        expect(held > 0, "no wait began while the lock was held")
        # The holder may release it between the look at it and the record of the wait.
        often(running, named, "a wait begins within the life of the holder")
        often(right, held, "a wait has the task that holds the lock")
        return f"{named} with the holder"
