import { hasEnded } from '../client/client.js'
import type { JobCommands } from './job-commands.js'
import type { Place } from './job-list.js'

interface BulkBarProps {
  selected: readonly Place[]
  all: readonly Place[]
  onChoose(isChosen: boolean): void
  commands: JobCommands
}

/** Selects all songs of the list, and does with the selected ones what can be done with them. */
export function BulkBar({ selected, all, onChoose, commands }: BulkBarProps) {
  const done = selected.filter(({ status }) => status === 'SUCCEEDED')
  const failed = selected.filter(({ status }) => status === 'FAILED')
  const active = selected.filter((job) => !hasEnded(job))
  return (
    <div class="flow bulk screen">
      <label class="check quiet">
        <input
          type="checkbox"
          checked={selected.length === all.length}
          ref={(box) => {
            if (box) box.indeterminate = selected.length > 0 && selected.length < all.length
          }}
          onChange={(event) => onChoose(event.currentTarget.checked)}
        />
        {selected.length === 0 ? 'Select all' : `${selected.length} selected`}
      </label>
      {selected.length > 0 && (
        <span class="flow">
          {done.length > 0 && (
            <button type="button" onClick={() => void commands.archive(done)}>
              Download (ZIP)
            </button>
          )}
          {failed.length > 0 && (
            <button type="button" onClick={() => void commands.again(failed)}>
              Send again
            </button>
          )}
          {active.length > 0 && (
            <button type="button" onClick={() => void commands.stop(active)}>
              Stop
            </button>
          )}
          <button type="button" onClick={() => commands.remove(selected)}>
            Delete
          </button>
        </span>
      )}
    </div>
  )
}
