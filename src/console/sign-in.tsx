import { useLayoutEffect, useRef } from 'preact/hooks'
import { ErrorNotice } from './error-notice.js'
import type { Explanation } from './words.js'

interface SignInProps {
  problem?: Explanation
  onKey(key: string, onDevice: boolean): void
}

export function SignIn({ problem, onKey }: SignInProps) {
  const field = useRef<HTMLInputElement>(null)
  const device = useRef<HTMLInputElement>(null)
  // Before it is painted: a person may type as soon as the field is seen.
  useLayoutEffect(() => field.current?.focus(), [])
  return (
    <form
      class="card sign-in"
      onSubmit={(event) => {
        event.preventDefault()
        const key = field.current?.value.trim()
        if (key) onKey(key, device.current?.checked ?? false)
      }}
    >
      <h1>Separate a song</h1>
      <p class="quiet">Get the vocals and the music as separate tracks. Enter your API key to begin.</p>
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
      <label class="check">
        <input ref={device} type="checkbox" />
        Remember the key on this device
      </label>
      {problem && <ErrorNotice problem={problem} />}
      <button type="submit" class="main">
        Continue
      </button>
      <details>
        <summary>Where do I find a key?</summary>
        <p class="quiet">
          When <code>stemwork serve --console</code> starts for the first time, it prints a link that signs you in.
          Anyone who is signed in can create another key under “API keys”. While the service is stopped, its operator
          can run <code>stemwork keys create --data &lt;folder&gt;</code>.
        </p>
      </details>
    </form>
  )
}
