// Everything that the page knows of one stream: what it asked for, and the events since then.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Columns, History, LabelEvent, StreamDescription } from "./answers";
import { isOutage, report } from "./connection";
import { RETRY_MS, problemOf } from "./hooks";
import { follow } from "./live";
import { type Label, type Labels, type Row, extended, relabelled, rowsOf } from "./rows";
import { Problem, type Query, get, streamPath, unreachable } from "./service";

const TAIL = 2000;
const MOST_LABELS = 1000;
const FLUSH_MS = 200;
const REFRESH_MS = 2500;

export interface StreamState {
  description: StreamDescription | null;
  tail: Row[];
  problem: Problem | null;
  /** Grows when what was learned may look different: what is drawn from the model is asked for again. */
  version: number;
  labels: Labels;
  /** Take note of a label given here, for one sample or (null) many; the event stream tells of each a moment later. */
  labelled: (seq: number | null, label: Label) => void;
}

type Told = Omit<StreamState, "labelled">;
const UNKNOWN: Told = { description: null, tail: [], problem: null, version: 0, labels: new Map() };

export function useStream(stream: string): StreamState {
  const [told, setTold] = useState<Told>(UNKNOWN);
  const watch = useRef<Watch | null>(null);
  useEffect(() => {
    setTold(UNKNOWN);
    const made = new Watch(stream, (change) => setTold((before) => ({ ...before, ...change(before) })));
    watch.current = made;
    void made.start();
    return () => made.stop();
  }, [stream]);
  return { ...told, labelled: (seq, label) => watch.current?.labelled(seq, label) };
}

/** The newest samples, as many as are wanted. */
export function newest<T>(stream: string, points: number, more: Query = {}): Promise<T> {
  return get<T>(streamPath(stream, "/history"), { points, ...more });
}

/** The last word on each sample, of those that were labelled last. */
function newestOf(before: Labels, after: Labels): Labels {
  const all = [...before].filter(([seq]) => !after.has(seq)).concat([...after]);
  return new Map(all.slice(-MOST_LABELS));
}

type Change = (before: Told) => Partial<Told>;

/** Keeps the state of one stream true: samples are shown in gulps, the model is asked for now and then. */
class Watch {
  private waiting: Row[] = [];
  private flushing: number | undefined;
  private refreshing: number | undefined;
  private retrying: number | undefined;
  private unfollow = (): void => {};
  private isStopped = false;
  /** The event stream fails, and comes back, apart from the requests. */
  private readonly follower = {};

  constructor(
    private readonly stream: string,
    private readonly set: (change: Change) => void,
  ) {}

  start = async (): Promise<void> => {
    const position = await this.load();
    if (this.isStopped) return;
    if (position === undefined) {
      this.retrying = window.setTimeout(this.start, RETRY_MS);
      return;
    }
    this.unfollow = follow(this.stream, position, {
      samples: this.take,
      labels: this.label,
      model: this.refreshSoon,
      reset: () => void this.load(),
      deleted: () => this.set(() => ({ problem: new Problem(404, "unknown_stream", "The stream was deleted.") })),
      connected: this.connected,
    });
  };

  stop(): void {
    this.isStopped = true;
    this.unfollow();
    window.clearTimeout(this.flushing);
    window.clearTimeout(this.refreshing);
    window.clearTimeout(this.retrying);
    report(this, null);
    report(this.follower, null);
  }

  labelled(seq: number | null, label: Label): void {
    if (seq !== null) this.label({ seq: [seq], label: [label] });
    void this.describe();
  }

  /** Ask for everything, and give the position of the log to go on from. */
  private load = async (): Promise<string | undefined> => {
    let position: string | undefined;
    await this.describe();
    await this.attempt(async () => {
      const history = await newest<History>(this.stream, TAIL);
      position = history.position;
      return (before) => ({ tail: extended(rowsOf(history), before.tail, TAIL) });
    });
    return position;
  };

  private describe = (): Promise<void> =>
    this.attempt(async () => {
      const description = await get<StreamDescription>(streamPath(this.stream));
      if (!this.isStopped) report(this, null);
      return (before) => ({ description, version: before.version + 1, problem: null });
    });

  private async attempt(work: () => Promise<Change>): Promise<void> {
    const change: Change = await work().catch((error: unknown) => this.failed(problemOf(error)));
    if (!this.isStopped) this.set(change);
  }

  private failed(problem: Problem): Change {
    if (!this.isStopped) report(this, problem);
    if (!isOutage(problem)) return () => ({ problem });
    this.refreshSoon();
    return () => ({});
  }

  private take = (columns: Columns): void => {
    this.waiting.push(...rowsOf(columns));
    this.flushing ??= window.setTimeout(this.flush, FLUSH_MS);
    this.refreshSoon();
  };

  private flush = (): void => {
    const news = this.waiting;
    this.waiting = [];
    this.flushing = undefined;
    this.set((before) => ({ tail: extended(before.tail, news, TAIL) }));
  };

  private label = (event: LabelEvent): void => {
    if (this.flushing !== undefined) {
      window.clearTimeout(this.flushing);
      this.flush();
    }
    this.set((before) => {
      const labels = new Map(event.seq.map((seq, i) => [seq, event.label[i] ?? null]));
      return { tail: relabelled(before.tail, labels), labels: newestOf(before.labels, labels) };
    });
    this.refreshSoon();
  };

  private refreshSoon = (): void => {
    this.refreshing ??= window.setTimeout(() => {
      this.refreshing = undefined;
      void this.describe();
    }, REFRESH_MS);
  };

  private connected = (isConnected: boolean): void => {
    if (isConnected) this.refreshSoon();
    report(this.follower, isConnected ? null : unreachable());
  };
}
