// The tree of the beginnings of names: the way down to here, and where it goes on.
import type { StreamGroup } from "../answers";
import { count, plural } from "../format";
import { type Choice, addressOf, partsOf } from "./choice";

interface Props {
  choice: Choice;
  groups: StreamGroup[];
  more: number;
}

export function Groups({ choice, groups, more }: Props): preact.JSX.Element | null {
  if (choice.prefix === "" && groups.length === 0) return null;
  return (
    <nav class="groups" aria-label="Groups of streams">
      {choice.prefix !== "" && (
        <p class="trail">
          <a href={addressOf({ ...choice, prefix: "" })}>all</a>
          {partsOf(choice.prefix).map(({ part, upTo }) => (
            upTo === choice.prefix ? <b key={upTo} aria-current="true">{part}</b> : <a key={upTo} href={addressOf({ ...choice, prefix: upTo })}>{part}</a>
          ))}
        </p>
      )}
      <ul>
        {groups.map((group) => (
          <li key={group.prefix}>
            <a href={addressOf({ ...choice, prefix: group.prefix })}>
              <span class="name">{group.prefix.slice(choice.prefix.length)}</span>
              <span class="soft">{count(group.streams)}<span class="hidden"> streams</span></span>
              {group.open_incidents > 0 && <span class="tag flagged">{count(group.open_incidents)} open</span>}
            </a>
          </li>
        ))}
        {more > 0 && <li class="soft">and {plural(more, "group")} more</li>}
      </ul>
    </nav>
  );
}
