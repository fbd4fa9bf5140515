import { KeyForm } from '../session/key-form.js'

export function SignIn({ problem, onKey }: { problem?: string; onKey(key: string): void }) {
  return (
    <KeyForm
      title="Operator"
      text="See and control the jobs of all applications."
      label="Operator key"
      problem={problem === undefined ? undefined : { text: problem }}
      onKey={onKey}
    >
      <p class="quiet small">
        The service was started with it: <code>--operator-key</code> or <code>STEMWORK_OPERATOR_KEY</code>. A cookie
        keeps you signed in for half a day, or until you close the browser.
      </p>
    </KeyForm>
  )
}
