import type { JobStatus, WorkflowSummary } from '../client/client.js'
import type { ListFilters } from './route.js'
import { statusWords } from './words.js'

const statuses: readonly (JobStatus | undefined)[] = [undefined, 'QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED']
const times = [
  { name: 'Any time', days: undefined },
  { name: 'Last 24 hours', days: 1 },
  { name: 'Last 7 days', days: 7 },
  { name: 'Last 30 days', days: 30 },
]

interface LibraryFiltersProps {
  filters: ListFilters
  workflows: readonly WorkflowSummary[]
  onChange(filters: ListFilters): void
}

export function LibraryFilters({ filters, workflows, onChange }: LibraryFiltersProps) {
  const change = (changes: ListFilters) => onChange({ ...filters, ...changes })
  return (
    <div class="filters">
      <input
        type="search"
        class="search"
        aria-label="Search by name"
        placeholder="Search by name"
        maxLength={255}
        value={filters.search ?? ''}
        onInput={({ currentTarget: { value } }) => change({ search: value || undefined })}
      />
      <fieldset class="segments">
        <legend class="hidden">Status</legend>
        {statuses.map((one) => (
          <label key={one ?? 'all'}>
            <input
              type="radio"
              name="status"
              checked={filters.status === one}
              onChange={() => change({ status: one })}
            />
            <span>{one ? statusWords[one] : 'All'}</span>
          </label>
        ))}
      </fieldset>
      <select
        aria-label="Created"
        value={String(filters.days ?? '')}
        onChange={({ currentTarget: { value } }) => change({ days: value ? Number(value) : undefined })}
      >
        {times.map((time) => (
          <option key={time.name} value={String(time.days ?? '')}>
            {time.name}
          </option>
        ))}
      </select>
      {workflows.length > 1 && (
        <select
          aria-label="Kind of job"
          value={filters.workflow ?? ''}
          onChange={({ currentTarget: { value } }) => change({ workflow: value || undefined })}
        >
          <option value="">All workflows</option>
          {workflows.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      )}
      {filters.batch !== undefined && (
        <button type="button" class="tag" onClick={() => change({ batch: undefined })}>
          Batch: {filters.batch} <span aria-hidden="true">✕</span>
          <span class="hidden">Show all batches</span>
        </button>
      )}
    </div>
  )
}
