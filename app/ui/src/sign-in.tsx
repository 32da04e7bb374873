// The form that takes an API key, once.
import { useState } from "preact/hooks";
import type { Session } from "./answers";
import { ErrorNote } from "./card";
import { problemOf } from "./hooks";
import { type Problem, signIn } from "./service";

export function SignIn({ onSignedIn }: { onSignedIn: (session: Session) => void }): preact.JSX.Element {
  const [problem, setProblem] = useState<Problem | null>(null);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget as HTMLFormElement).get("key"));
    try {
      onSignedIn(await signIn(key));
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  return (
    <main class="alone">
      <form class="card sign-in" onSubmit={(event) => void submit(event)}>
        <h1>Sign in</h1>
        <p class="caption">This service needs an API key. No script keeps it: a cookie stands for it until you sign out.</p>
        <label>API key <input name="key" type="password" autocomplete="current-password" required aria-invalid={problem !== null} /></label>
        <ErrorNote problem={problem} />
        <button type="submit" class="primary">Sign in</button>
      </form>
    </main>
  );
}
