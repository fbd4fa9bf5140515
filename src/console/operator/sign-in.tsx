import { useLayoutEffect, useRef } from 'preact/hooks'
import { ErrorNotice } from '../error-notice.js'

export function SignIn({ problem, onKey }: { problem?: string; onKey(key: string): void }) {
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
      <h1>Operator</h1>
      <p class="quiet">See and steer the jobs of all applications.</p>
      <label for="key">Operator key</label>
      <input
        id="key"
        ref={field}
        type="password"
        autocomplete="off"
        spellcheck={false}
        required
        aria-invalid={problem !== undefined}
      />
      {problem !== undefined && <ErrorNotice problem={{ text: problem }} />}
      <button type="submit" class="main">
        Continue
      </button>
      <p class="quiet small">
        It is the one that the service was started with: <code>--operator-key</code> or{' '}
        <code>STEMWORK_OPERATOR_KEY</code>. It is kept until this tab is closed.
      </p>
    </form>
  )
}
