import type { JobStatus } from '../client/client.js'

interface StatusFilterProps {
  words: Record<JobStatus, string>
  /** Undefined for all. */
  chosen: string | undefined
  onChange(status: JobStatus | undefined): void
}

export function StatusFilter({ words, chosen, onChange }: StatusFilterProps) {
  const statuses = Object.entries(words) as [JobStatus, string][]
  return (
    <fieldset class="segments">
      <legend class="hidden">Status</legend>
      {[[undefined, 'All'] as const, ...statuses].map(([status, label]) => (
        <label key={label}>
          <input type="radio" name="status" checked={chosen === status} onChange={() => onChange(status)} />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  )
}

interface SelectFilterProps {
  label: string
  /** What stands for no filter. */
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
