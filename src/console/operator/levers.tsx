import { useRef } from 'preact/hooks'
import { Button } from '../elements/button.js'
import type { Overview, RuleState } from '../../http/operator/answers.js'
import type { Change, Target } from './service.js'
import { Confirm } from '../elements/confirm.js'

export type OnChange = (target: Target, change: Change) => Promise<void>

export const stateWords: Record<RuleState, string> = { open: 'Open', paused: 'Paused', draining: 'Draining' }

type Rule = Overview['rules'][number]

export function ruleOf(rules: readonly Rule[], target: Target): Pick<Rule, 'state' | 'maxRunning'> {
  const id = target.kind === 'deployment' ? '' : target.id
  return rules.find((rule) => rule.kind === target.kind && rule.id === id) ?? { state: 'open', maxRunning: null }
}

interface LeversProps {
  target: Target
  /** Name of the target on the page. */
  name: string
  rules: readonly Rule[]
  onChange: OnChange
}

/** Buttons to pause, drain, resume and limit the target. */
export function Levers({ target, name, rules, onChange }: LeversProps) {
  const { state, maxRunning } = ruleOf(rules, target)
  return (
    <div class="levers" role="group" aria-label={`Control ${name}`}>
      {state === 'open' ? (
        <>
          <Confirm
            label="Pause"
            title={`Pause ${name}?`}
            text="New jobs are accepted and wait. None starts until you resume. Running jobs continue."
            onConfirm={() => onChange(target, { state: 'paused' })}
          />
          <Confirm
            label="Drain"
            title={`Drain ${name}?`}
            text="New jobs are refused. Waiting and running jobs are finished."
            onConfirm={() => onChange(target, { state: 'draining' })}
          />
        </>
      ) : (
        <Button class="main" onClick={() => void onChange(target, { state: 'open' })}>
          Resume
        </Button>
      )}
      <Limit target={target} name={name} maxRunning={maxRunning} onChange={onChange} />
    </div>
  )
}

function Limit({ target, name, maxRunning, onChange }: Omit<LeversProps, 'rules'> & { maxRunning: number | null }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const field = useRef<HTMLInputElement>(null)
  return (
    <>
      <Button onClick={() => dialog.current?.showModal()}>
        {maxRunning === null ? 'Limit' : `At most ${maxRunning}`}
      </Button>
      <dialog ref={dialog} aria-label={`Limit ${name}`}>
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault()
            const count = Number(field.current?.value)
            void onChange(target, { maxRunning: count > 0 ? count : null })
            dialog.current?.close()
          }}
        >
          <h2>Limit {name}</h2>
          <label class="field">
            Jobs that run at a time, on all workers together
            <input ref={field} type="number" min="1" step="1" defaultValue={maxRunning ?? ''} placeholder="No limit" />
          </label>
          <div class="buttons">
            <Button onClick={() => dialog.current?.close()}>Back</Button>
            <button type="submit" class="main">
              Set limit
            </button>
          </div>
        </form>
      </dialog>
    </>
  )
}

export function StateChip({ rule }: { rule: Pick<Rule, 'state' | 'maxRunning'> }) {
  return <span class={`pill ${rule.state}`}>{stateWords[rule.state]}</span>
}
