import { useEffect, useState } from 'preact/hooks'
import type { WorkflowSummary } from '../client/client.js'
import type { Client } from './page-client.js'
import type { Choices, Refusals } from './choices.js'
import { type ParamField, paramFields, usable } from './param-fields.js'
import { whenUsed } from './when-used.js'

const ParamInput = whenUsed(async () => (await import('./later.js')).ParamInput, <p class="quiet">Loading …</p>)

interface JobChoicesProps {
  client: Client
  workflows: readonly WorkflowSummary[]
  choices: Choices
  refusals: Refusals
  onChange(choices: Choices): void
}

/** What to do with the next songs: what the service offers, and nothing where there is no choice. */
export function JobChoices({ client, workflows, choices, refusals, onChange }: JobChoicesProps) {
  const [fields, setFields] = useState<readonly ParamField[]>([])
  const [isOpened, setOpened] = useState(false)
  const { workflow, batchName } = choices
  const settings = choices.settings[workflow] ?? {}
  useEffect(() => {
    let isGone = false
    setFields([])
    // Without an answer there is nothing to choose; sending a song tells what is wrong.
    paramFields(client, workflow).then(
      (read) => isGone || setFields(read),
      () => undefined,
    )
    return () => void (isGone = true)
  }, [client, workflow])
  const count = usable(fields, settings).filter(({ name }) => settings[name] !== undefined).length

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
        <summary>Options{count > 0 && ` (${count} set)`}</summary>
        <div class="fields">
          {(isOpened || count > 0 ? usable(fields, settings) : []).map((field) => (
            <ParamInput
              key={`${workflow} ${field.name}`}
              field={field}
              settings={settings}
              refusal={refusals[field.name]}
              onChange={(value) =>
                onChange({
                  ...choices,
                  settings: { ...choices.settings, [workflow]: { ...settings, [field.name]: value } },
                })
              }
            />
          ))}
          <BatchField name={batchName} onChange={(name) => onChange({ ...choices, batchName: name })} />
        </div>
      </details>
    </>
  )
}

function BatchField({ name, onChange }: { name: string | undefined; onChange(name: string | undefined): void }) {
  return (
    <label class="field">
      Batch
      <input
        type="text"
        maxLength={255}
        placeholder="None"
        value={name ?? ''}
        onInput={({ currentTarget: { value } }) => onChange(value.trim() || undefined)}
      />
    </label>
  )
}
