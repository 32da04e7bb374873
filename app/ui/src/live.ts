// The server-sent events of one stream, resumed where they broke off.
import type { Columns, LabelEvent } from "./answers";
import { address, readSession, streamPath } from "./service";

export interface Listener {
  samples: (columns: Columns) => void;
  labels: (event: LabelEvent) => void;
  model: () => void;
  reset: () => void;
  deleted: () => void;
  connected: (isConnected: boolean) => void;
}

const RETRY_MS = 2000;

/** Listen from a position of the stream's log on, until the returned function is called. */
export function follow(stream: string, from: string | undefined, listener: Listener): () => void {
  let source: EventSource;
  let position = from;
  let retry: number | undefined;

  const on = <T>(name: string, act: (data: T) => void): void => {
    source.addEventListener(name, (event) => {
      position = event.lastEventId || position;
      act(JSON.parse(event.data as string) as T);
    });
  };

  const open = (): void => {
    source = new EventSource(address(streamPath(stream, "/events"), { after: position, values: true }));
    source.onopen = () => listener.connected(true);
    source.onerror = () => {
      listener.connected(false);
      // the browser reconnects by itself, but not after a refusal
      if (source.readyState === EventSource.CLOSED) retry = window.setTimeout(reopen, RETRY_MS);
    };
    on<Columns>("samples", listener.samples);
    on<LabelEvent>("labels", listener.labels);
    on("model", listener.model);
    on("reset", listener.reset);
    on("deleted", () => {
      source.close();
      listener.deleted();
    });
  };

  const reopen = async (): Promise<void> => {
    // says when the page is signed out, which an event stream cannot
    const session = await readSession().catch(() => null);
    if (session === null || !session.keys_required || session.signed_in) open();
  };

  open();
  return () => {
    window.clearTimeout(retry);
    source.close();
  };
}
