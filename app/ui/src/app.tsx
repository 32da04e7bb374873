// The page: the session, the current view, and the bar above it.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Session } from "./answers";
import { ErrorNote } from "./card";
import { isOutage, report, useOutages } from "./connection";
import { RETRY_MS, problemOf } from "./hooks";
import { type Problem, readSession, signOut, whenSignedOut } from "./service";
import { Shortcuts, useShortcuts } from "./shortcuts";
import { SignIn } from "./sign-in";
import { StreamView } from "./stream-view";
import { StreamsView } from "./streams-view";
import { useTheme } from "./theme";

// #/streams/web-1?incident=17 selects the sample that opened the incident
const STREAM = /^#\/streams\/([^/?]+)(?:\?(.*))?$/;

function Page(): preact.JSX.Element {
  const [theme, toggleTheme] = useTheme();
  const { session, problem, setSession } = useSession();
  const [isHelpOpen, setHelpOpen] = useState(false);
  const place = useHash();
  const stream = place?.stream ?? null;
  const isIn = session !== null && (!session.keys_required || session.signed_in);
  useShortcuts({ "?": () => setHelpOpen((isOpen) => !isOpen) });

  const leave = async (): Promise<void> => {
    await signOut().catch(() => undefined);
    setSession(await readSession());
  };
  return (
    <>
      <header class="top">
        <a class="brand" href="#/"><img src="ui/icon.svg" alt="" width="24" height="24" /> itan</a>
        {isIn && stream !== null && <a class="back" href="#/">All streams</a>}
        <span class="space" />
        <button type="button" class="icon keys-help" aria-label="Keys" title="Keys (?)" onClick={() => setHelpOpen(true)}>?</button>
        <button type="button" class="icon" aria-label={theme === "dark" ? "Light colours" : "Dark colours"} title={theme === "dark" ? "Light" : "Dark"} onClick={toggleTheme}>{theme === "dark" ? "☀" : "☾"}</button>
        {session?.keys_required && session.signed_in && <button type="button" onClick={() => void leave()}>Sign out</button>}
      </header>
      <Outages />
      <ErrorNote problem={problem} />
      {session !== null && !isIn && <SignIn onSignedIn={setSession} />}
      {isIn && (place === null ? <StreamsView /> : <StreamView key={`${place.stream}?${place.sample}`} {...place} theme={theme} mayLabel={mayLabel(session, place.stream)} />)}
      <Shortcuts isOpen={isHelpOpen} onClose={() => setHelpOpen(false)} />
    </>
  );
}

/** The one place that says that the service does not answer. */
function Outages(): preact.JSX.Element | null {
  const outages = useOutages();
  return outages.length === 0 ? null : <p class="banner" role="status">{outages.join(" ")} The page tries again by itself.</p>;
}

function mayLabel({ keys_required: isAsked, grants }: Session, stream: string): boolean {
  return !isAsked || (grants ?? []).some(({ scopes, streams }) => scopes.includes("label") && covers(streams, stream));
}

function covers(streams: string, stream: string): boolean {
  return streams.endsWith("*") ? stream.startsWith(streams.slice(0, -1)) : stream === streams;
}

interface Visitor {
  session: Session | null;
  problem: Problem | null;
  setSession: (session: Session) => void;
}

/** Ask who is there, again and again until the service answers, and anew when it forgot us. */
function useSession(): Visitor {
  const [session, setSession] = useState<Session | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const tell = (found: Problem | null): void => {
      report(whenSignedOut, found);
      setProblem(found !== null && isOutage(found) ? null : found);
    };
    const read = (): void => {
      readSession().then(
        (found) => (tell(null), setSession(found)),
        (error: unknown) => (tell(problemOf(error)), setTimeout(read, RETRY_MS)),
      );
    };
    whenSignedOut(read);
    read();
  }, []);
  return { session, problem, setSession };
}

interface Place {
  stream: string;
  /** The sample to look at first. */
  sample: number | null;
}

/** The stream that the address names. */
function useHash(): Place | null {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = (): void => setHash(location.hash);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return placeIn(hash);
}

function placeIn(hash: string): Place | null {
  const [, name, query] = STREAM.exec(hash) ?? [];
  if (name === undefined) return null;
  const seq = Number(new URLSearchParams(query).get("incident"));
  try {
    return { stream: decodeURIComponent(name), sample: Number.isSafeInteger(seq) && seq > 0 ? seq : null };
  } catch {
    return null;
  }
}

render(<Page />, document.getElementById("page") as HTMLElement);
