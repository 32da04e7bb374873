// The frame of each part of the page.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Props {
  title: string;
  caption?: string;
  tools?: ComponentChildren;
  name?: string;
  children: ComponentChildren;
}

export function Card({ title, caption, tools, name, children }: Props): preact.JSX.Element {
  const id = useId();
  return (
    <section class={`card ${name ?? title.toLowerCase()}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {tools}
      </header>
      {caption !== undefined && <p class="caption">{caption}</p>}
      {children}
    </section>
  );
}

export function ErrorNote({ problem }: { problem: Error | null }): preact.JSX.Element | null {
  return problem === null ? null : <p class="problem" role="alert">{problem.message}</p>;
}
