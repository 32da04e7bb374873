// Keys for the review queue, what they do, and the switch that turns them off.
import { useEffect, useRef, useState } from "preact/hooks";
import { useNewest } from "./hooks";

const KEPT_AS = "itan-shortcuts";
const MEANINGS: [string, string][] = [
  ["a", "label what is under review as an anomaly"],
  ["n", "label it as normal"],
  ["u", "undo the last label"],
  ["j", "go to the next one"],
  ["k", "go to the previous one"],
  ["/", "search the list of streams"],
  ["?", "show or hide these"],
];

function areOn(): boolean {
  return localStorage.getItem(KEPT_AS) !== "off";
}

/** Act on single keys, unless one types, holds another key down, or has turned them off. */
export function useShortcuts(actions: Record<string, () => void>): void {
  const newest = useNewest(actions);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTyping(event.target)) return;
      if (event.key !== "?" && (!areOn() || document.querySelector("dialog[open]") !== null)) return;
      const act = newest.current[event.key];
      if (act === undefined) return;
      event.preventDefault();
      act();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input:not([type=checkbox]), select, textarea, [contenteditable]");
}

export function Shortcuts({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }): preact.JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOn, setOn] = useState(areOn);
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  const toggle = (): void => {
    localStorage.setItem(KEPT_AS, isOn ? "off" : "on");
    setOn(!isOn);
  };
  return (
    <dialog ref={dialog} aria-labelledby="shortcuts" onClose={onClose}>
      <h2 id="shortcuts">Keys</h2>
      <dl class="keys">
        {MEANINGS.map(([key, meaning]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{meaning}</dd></div>)}
      </dl>
      <label class="switch"><input type="checkbox" checked={isOn} onChange={toggle} /> act on single keys</label>
      <button type="button" onClick={onClose}>Close</button>
    </dialog>
  );
}
