import type { JobStatus } from '../../client/client.js'
import { statusWords } from '../words/first-words.js'

interface SegmentsProps<Value> {
  legend: string
  choices: readonly (readonly [value: Value, label: string])[]
  chosen: unknown
  onChange(value: Value): void
}

/** Radio buttons for a few choices, all visible. */
export function Segments<Value>({ legend, choices, chosen, onChange }: SegmentsProps<Value>) {
  return (
    <fieldset class="segments">
      <legend class="hidden">{legend}</legend>
      {choices.map(([value, label]) => (
        <label key={label}>
          <input type="radio" name={legend} checked={chosen === value} onChange={() => onChange(value)} />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  )
}

const statuses = Object.entries(statusWords) as [JobStatus, string][]

/** Undefined stands for all. */
export function StatusFilter(props: Pick<SegmentsProps<JobStatus | undefined>, 'chosen' | 'onChange'>) {
  return <Segments legend="Status" choices={[[undefined, 'All'], ...statuses]} {...props} />
}

interface SelectFilterProps {
  label: string
  /** Label of the choice without a filter. */
  all: string
  choices: Iterable<readonly [value: string, label: string]>
  chosen: string | undefined
  onChange(value: string | undefined): void
}

export function SelectFilter({ label, all, choices, chosen, onChange }: SelectFilterProps) {
  return (
    <select
      aria-label={label}
      value={chosen ?? ''}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
    >
      <option value="">{all}</option>
      {[...choices].map(([value, words]) => (
        <option key={value} value={value}>
          {words}
        </option>
      ))}
    </select>
  )
}
