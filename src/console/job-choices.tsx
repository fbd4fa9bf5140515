import { useEffect, useState } from 'preact/hooks'
import type { Client, WorkflowSummary } from '../client/client.js'
import { knownWorkflow } from './known-workflow.js'
import { formatWords } from './words.js'

export const stemsWorkflowId = 'service/stems-vocals-accompaniment'

/** What a person asks for beside the song. Params that are undefined are left to the service. */
export interface Choices {
  workflow: string
  model?: string
  format?: string
  batchName?: string
}

/** What the params of a workflow let a person choose. */
export interface Choosable {
  models: readonly string[]
  formats: readonly string[]
  /** What is made without a choice, if the workflow tells it. */
  usualFormat: string | undefined
}

export async function choosable(client: Client, workflow: string): Promise<Choosable> {
  const { params } = await knownWorkflow(client, workflow)
  const properties = (params.properties ?? {}) as Record<
    string,
    { enum?: readonly string[]; default?: unknown } | undefined
  >
  return {
    models: properties.model?.enum ?? [],
    formats: properties.format?.enum ?? [],
    usualFormat: typeof properties.format?.default === 'string' ? properties.format.default : undefined,
  }
}

interface JobChoicesProps {
  client: Client
  workflows: readonly WorkflowSummary[]
  choices: Choices
  onChange(choices: Choices): void
}

/** What to do with the next songs: what the service offers, and nothing where there is no choice. */
export function JobChoices({ client, workflows, choices, onChange }: JobChoicesProps) {
  const [options, setOptions] = useState<Choosable>()
  const { workflow } = choices
  useEffect(() => {
    let isGone = false
    setOptions(undefined)
    // Without an answer there is nothing to choose; sending a song tells what is wrong.
    choosable(client, workflow).then(
      (read) => isGone || setOptions(read),
      () => undefined,
    )
    return () => void (isGone = true)
  }, [client, workflow])

  return (
    <>
      {workflows.length > 1 && (
        <label class="choice">
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
      <details class="choices">
        <summary>Options</summary>
        <div class="choice">
          <Choice
            label="Format"
            names={options?.formats ?? []}
            chosen={choices.format}
            usual={options?.usualFormat}
            words={formatWords}
            onChange={(format) => onChange({ ...choices, format })}
          />
          <Choice
            label="Model"
            names={options?.models ?? []}
            chosen={choices.model}
            usual={undefined}
            words={(name) => name}
            onChange={(model) => onChange({ ...choices, model })}
          />
          <label>
            Batch
            <input
              type="text"
              maxLength={255}
              placeholder="None"
              value={choices.batchName ?? ''}
              onInput={({ currentTarget: { value } }) => onChange({ ...choices, batchName: value.trim() || undefined })}
            />
          </label>
        </div>
      </details>
    </>
  )
}

interface ChoiceProps {
  label: string
  names: readonly string[]
  chosen: string | undefined
  /** What stands for no choice; undefined if it is not known. */
  usual: string | undefined
  words(name: string): string
  onChange(name: string | undefined): void
}

function Choice({ label, names, chosen, usual, words, onChange }: ChoiceProps) {
  if (names.length === 0) return null
  return (
    <label>
      {label}
      <select value={chosen ?? ''} onChange={(event) => onChange(event.currentTarget.value || undefined)}>
        <option value="">{usual === undefined ? 'Default' : `${words(usual)} (default)`}</option>
        {names
          .filter((name) => name !== usual)
          .map((name) => (
            <option key={name} value={name}>
              {words(name)}
            </option>
          ))}
      </select>
    </label>
  )
}
