import type { WorkflowSummary } from '../../client/client.js'
import type { Choices } from './choices.js'

export interface WorkflowChoiceProps {
  workflows: readonly WorkflowSummary[]
  choices: Choices
  onChange(choices: Choices): void
}

export function WorkflowChoice({ workflows, choices, onChange }: WorkflowChoiceProps) {
  if (workflows.length < 2) return null
  return (
    <label class="flow">
      Workflow
      <select
        value={choices.workflow}
        onChange={(event) => onChange({ ...choices, workflow: event.currentTarget.value })}
      >
        {workflows.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Whether all settings are valid. Moves the focus to an invalid one, with which nothing may be sent. */
export function isCorrected(place: Element | null): boolean {
  const wrong = place?.querySelector<HTMLElement>('[aria-invalid="true"]')
  const options = wrong?.closest('details')
  if (options) options.open = true
  wrong?.focus()
  return !wrong
}
