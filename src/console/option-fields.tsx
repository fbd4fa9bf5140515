import { useEffect, useState } from 'preact/hooks'
import type { Refusals } from './choices.js'
import type { Client } from './page-client.js'
import { type ParamField, paramFields, type Settings, usable } from './param-fields.js'
import { ParamInput } from './param-input.js'

interface OptionsProps {
  client: Client
  workflow: string
  settings: Settings
}

interface OptionFieldsProps extends OptionsProps {
  refusals: Refusals
  onChange(settings: Settings): void
  batchName: string | undefined
  onBatch(name: string | undefined): void
}

/** A field for each param of a workflow that can be set, and for the batch. */
export function OptionFields({ refusals, onChange, batchName, onBatch, ...of }: OptionFieldsProps) {
  const { workflow, settings } = of
  return (
    <>
      {useUsable(of).map((field) => (
        <ParamInput
          key={`${workflow} ${field.name}`}
          field={field}
          settings={settings}
          refusal={refusals[field.name]}
          onChange={(value) => onChange({ ...settings, [field.name]: value })}
        />
      ))}
      <BatchField name={batchName} onChange={onBatch} />
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

/** How many of them are set. */
export function OptionCount(of: OptionsProps) {
  const count = useUsable(of).filter(({ name }) => of.settings[name] !== undefined).length
  return <>{count > 0 && ` (${count} set)`}</>
}

function useUsable({ client, workflow, settings }: OptionsProps): ParamField[] {
  const [fields, setFields] = useState<readonly ParamField[]>([])
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
  return usable(fields, settings)
}
