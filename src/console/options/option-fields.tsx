import type { Choices, Refusals } from './choices.js'
import type { Client } from '../service/page-client.js'
import { type ParamField, paramFields, type Settings, usable } from './param-fields.js'
import { ParamInput } from './param-input.js'
import { useAnswer } from '../elements/use-answer.js'

interface OptionsProps {
  client: Client
  choices: Choices
}

interface OptionFieldsProps extends OptionsProps {
  /** Song that the options belong to; absent for options of the next songs. */
  id?: string
  refusals: Refusals
  onChange(choices: Choices): void
}

/** A field for each param of a workflow that can be set, and for the batch. */
export function OptionFields({ client, choices, id, refusals, onChange }: OptionFieldsProps) {
  const { workflow, batchName, isEach = false } = choices
  const settings = choices.settings[workflow] ?? {}
  return (
    <>
      {useUsable({ client, choices }).map((field) => (
        <ParamInput
          key={`${workflow} ${field.name}`}
          id={`${id ?? 'param'}-${field.name}`}
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
      <label class="field">
        Batch
        <input
          type="text"
          maxLength={255}
          placeholder="None"
          value={batchName ?? ''}
          onInput={({ currentTarget: { value } }) => onChange({ ...choices, batchName: value.trim() || undefined })}
        />
      </label>
      {id === undefined && (
        <div class="field">
          <label class="check">
            <input
              type="checkbox"
              checked={isEach}
              aria-describedby="each-hint"
              onChange={({ currentTarget: { checked } }) => onChange({ ...choices, isEach: checked })}
            />
            Choose for each song
          </label>
          <p class="quiet" id="each-hint">
            Several files wait in the list until you send them.
          </p>
        </div>
      )}
    </>
  )
}

/** Number of options that are set. */
export function OptionCount(of: OptionsProps) {
  const settings: Settings = of.choices.settings[of.choices.workflow] ?? {}
  const count = useUsable(of).filter(({ name }) => settings[name] !== undefined).length
  return <>{count > 0 && ` (${count} set)`}</>
}

function useUsable({ client, choices: { workflow, settings } }: OptionsProps): ParamField[] {
  // Without an answer there is nothing to choose; sending a song will show what is wrong.
  const fields = useAnswer(() => paramFields(client, workflow), [client, workflow])
  return usable(fields ?? [], settings[workflow] ?? {})
}
