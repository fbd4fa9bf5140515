import { useRef } from 'preact/hooks'
import { KeyForm } from './key-form.js'
import type { Explanation } from '../words/words.js'

interface SignInProps {
  problem?: Explanation
  onKey(key: string, onDevice: boolean): void
}

export function SignIn({ problem, onKey }: SignInProps) {
  const device = useRef<HTMLInputElement>(null)
  return (
    <KeyForm
      title="Separate a song"
      text="Get the vocals and the music as separate tracks. Enter your API key to begin."
      label="API key"
      problem={problem}
      onKey={(key) => onKey(key, device.current?.checked ?? false)}
      fields={
        <label class="check quiet">
          <input ref={device} type="checkbox" />
          Stay signed in on this device
        </label>
      }
    >
      <details>
        <summary>Where do I find a key?</summary>
        <p class="quiet">
          When <code>stemwork serve --console</code> starts for the first time, it prints a link that signs you in once.
          Anyone who is signed in can create another key under “API keys”. While the service is stopped, its operator
          can run <code>stemwork keys create --data &lt;folder&gt;</code>.
        </p>
      </details>
    </KeyForm>
  )
}
