import { useLayoutEffect, useRef } from 'preact/hooks'
import { ErrorNotice } from './error-notice.js'
import type { Explanation } from './words.js'

export function SignIn({ problem, onKey }: { problem?: Explanation; onKey(key: string): void }) {
  const field = useRef<HTMLInputElement>(null)
  // Before it is painted: a person may type as soon as the field is seen.
  useLayoutEffect(() => field.current?.focus(), [])
  return (
    <form
      class="card sign-in"
      onSubmit={(event) => {
        event.preventDefault()
        const key = field.current?.value.trim()
        if (key) onKey(key)
      }}
    >
      <h1>Separate a song</h1>
      <p class="quiet">
        Voice on one track, music on the other. Enter your key to begin; it stays in this tab and goes when you close
        it.
      </p>
      <label for="key">API key</label>
      <input
        id="key"
        ref={field}
        type="password"
        autocomplete="off"
        spellcheck={false}
        required
        aria-invalid={problem !== undefined}
      />
      {problem && <ErrorNotice problem={problem} />}
      <button type="submit" class="main">
        Continue
      </button>
    </form>
  )
}
