import { useState } from 'preact/hooks'
import { type ParamField, problemOf, type Settings } from './param-fields.js'

interface ParamInputProps {
  id: string
  field: ParamField
  settings: Settings
  /** Why the service refused the value. */
  refusal: string | undefined
  onChange(value: string | boolean | undefined): void
}

/** Field for one param, with its description and its problem. */
export function ParamInput({ id, field, settings, refusal, onChange }: ParamInputProps) {
  const { label, description, type, enum: names } = field
  const [isTyping, setTyping] = useState(false)
  const problem = refusal ?? (isTyping ? undefined : problemOf(field, settings))
  // The labels of the choices say enough.
  const hint = names ? undefined : description
  const control = (
    <Control
      field={field}
      settings={settings}
      common={{
        id,
        'aria-invalid': problem !== undefined,
        'aria-describedby': [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(' ') || undefined,
      }}
      onTyping={setTyping}
      onChange={onChange}
    />
  )
  return (
    <div class="field">
      {type === 'boolean' ? (
        <label class="check">
          {control}
          {label}
        </label>
      ) : (
        <>
          <label for={id}>{label}</label>
          {control}
        </>
      )}
      {hint && (
        <p class="quiet" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {problem && (
        <p class="danger" id={`${id}-problem`} role="alert">
          {problem}
        </p>
      )}
    </div>
  )
}

interface ControlProps extends Pick<ParamInputProps, 'field' | 'settings' | 'onChange'> {
  common: { id: string; 'aria-invalid': boolean; 'aria-describedby': string | undefined }
  onTyping(isTyping: boolean): void
}

function Control({ field, settings, common, onTyping, onChange }: ControlProps) {
  const { name, type, enum: names, default: usual, minimum = -1 } = field
  const given = settings[name]
  if (type === 'boolean')
    return (
      <input
        {...common}
        type="checkbox"
        checked={(given ?? usual) === true}
        onChange={({ currentTarget: { checked } }) => onChange(checked === usual ? undefined : checked)}
      />
    )
  if (names) {
    const words = (one: string | number | boolean) => field['x-labels']?.[names.indexOf(one as string)] ?? String(one)
    return (
      <select
        {...common}
        value={String(given ?? '')}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      >
        <option value="">{usual === undefined ? 'Default' : `${words(usual)} (default)`}</option>
        {names
          .filter((one) => one !== usual)
          .map((one) => (
            <option key={one} value={String(one)}>
              {words(one)}
            </option>
          ))}
      </select>
    )
  }
  const typed = {
    ...common,
    value: String(given ?? ''),
    onInput({ currentTarget: { value } }: { currentTarget: { value: string } }) {
      onTyping(true)
      onChange(value || undefined)
    },
    onBlur: () => onTyping(false),
  }
  if (field['x-multiline']) return <textarea {...typed} rows={6} />
  return (
    <input
      {...typed}
      type="text"
      // The decimal keyboards of phones have no minus.
      inputMode={minimum < 0 || type === 'string' ? 'text' : 'decimal'}
      placeholder={String(usual ?? '')}
    />
  )
}
