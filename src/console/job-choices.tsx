import { useState } from 'preact/hooks'
import type { WorkflowSummary } from '../client/client.js'
import type { Choices, Refusals } from './choices.js'
import type { Client } from './page-client.js'
import { whenUsed } from './when-used.js'

const OptionFields = whenUsed(({ OptionFields }) => OptionFields)
const OptionCount = whenUsed(({ OptionCount }) => OptionCount, <></>)

interface JobChoicesProps {
  client: Client
  workflows: readonly WorkflowSummary[]
  choices: Choices
  refusals: Refusals
  onChange(choices: Choices): void
}

/** What to do with the next songs: what the service offers, and nothing where there is no choice. */
export function JobChoices({ client, workflows, choices, refusals, onChange }: JobChoicesProps) {
  const [isOpened, setOpened] = useState(false)
  const { workflow, batchName } = choices
  const settings = choices.settings[workflow] ?? {}
  const isSet = Object.values(settings).some((value) => value !== undefined)
  const of = { client, workflow, settings }

  return (
    <>
      {workflows.length > 1 && (
        <label class="flow">
          Workflow
          <select value={workflow} onChange={(event) => onChange({ ...choices, workflow: event.currentTarget.value })}>
            {workflows.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <details class="choices" onToggle={() => setOpened(true)}>
        <summary>Options{isSet && <OptionCount {...of} />}</summary>
        <div class="fields">
          {(isOpened || isSet) && (
            <OptionFields
              {...of}
              refusals={refusals}
              batchName={batchName}
              onBatch={(name) => onChange({ ...choices, batchName: name })}
              onChange={(changed) => onChange({ ...choices, settings: { ...choices.settings, [workflow]: changed } })}
            />
          )}
        </div>
      </details>
    </>
  )
}
