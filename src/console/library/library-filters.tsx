import { Button } from '../elements/button.js'
import type { WorkflowSummary } from '../../client/client.js'
import { SelectFilter, StatusFilter } from '../elements/filter-controls.js'
import type { ListFilters } from '../route.js'

const times = [
  ['1', 'Last 24 hours'],
  ['7', 'Last 7 days'],
  ['30', 'Last 30 days'],
] as const

interface LibraryFiltersProps {
  filters: ListFilters
  workflows: readonly WorkflowSummary[]
  onChange(filters: ListFilters): void
}

export function LibraryFilters({ filters, workflows, onChange }: LibraryFiltersProps) {
  const change = (changes: ListFilters) => onChange({ ...filters, ...changes })
  return (
    <div class="flow filters screen">
      <input
        type="search"
        aria-label="Search by name"
        placeholder="Search by name"
        maxLength={255}
        value={filters.search ?? ''}
        onInput={({ currentTarget: { value } }) => change({ search: value || undefined })}
      />
      <StatusFilter chosen={filters.status} onChange={(status) => change({ status })} />
      <SelectFilter
        label="Created"
        all="Any time"
        choices={times}
        chosen={filters.days?.toString()}
        onChange={(days) => change({ days: days === undefined ? undefined : Number(days) })}
      />
      {workflows.length > 1 && (
        <SelectFilter
          label="Type of job"
          all="All workflows"
          choices={workflows.map(({ id, name }) => [id, name])}
          chosen={filters.workflow}
          onChange={(workflow) => change({ workflow })}
        />
      )}
      {filters.batch !== undefined && (
        <Button class="tag" onClick={() => change({ batch: undefined })}>
          Batch: {filters.batch} <span aria-hidden="true">✕</span>
          <span class="hidden">Show all batches</span>
        </Button>
      )}
    </div>
  )
}
