// Light or dark: as the system is set, until the visitor chooses.
import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";

const KEPT_AS = "itan-theme";
const SYSTEM = window.matchMedia("(prefers-color-scheme: dark)");

function present(): Theme {
  const kept = localStorage.getItem(KEPT_AS);
  return kept === "light" || kept === "dark" ? kept : SYSTEM.matches ? "dark" : "light";
}

export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(present);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  useEffect(() => {
    const follow = (): void => setTheme(present());
    SYSTEM.addEventListener("change", follow);
    return () => SYSTEM.removeEventListener("change", follow);
  }, []);
  const toggle = (): void => {
    const other = theme === "dark" ? "light" : "dark";
    localStorage.setItem(KEPT_AS, other);
    setTheme(other);
  };
  return [theme, toggle];
}

/** A colour of the stylesheet, for what is drawn on a canvas. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
