import type { JobCommands } from '../jobs/job-commands.js'
import type { Place } from '../jobs/job-list.js'
import { whenUsed } from '../when-used.js'

const BulkActions = whenUsed(({ BulkActions: Actions }) => Actions, <></>)

interface BulkBarProps {
  selected: readonly Place[]
  /** Number of songs of the list that were read: only these can be selected. */
  read: number
  /** Number of all songs of the list. */
  count: number
  onChoose(isChosen: boolean): void
  commands: JobCommands
}

/** Selects all songs of the list; while some are selected, shows the actions on them. */
export function BulkBar({ selected, read, count, onChoose, commands }: BulkBarProps) {
  return (
    <div class="flow bulk screen">
      <label class="check quiet">
        <input
          type="checkbox"
          checked={selected.length === read}
          ref={(box) => {
            if (box) box.indeterminate = selected.length > 0 && selected.length < read
          }}
          onChange={(event) => onChoose(event.currentTarget.checked)}
        />
        {selected.length === 0 ? 'Select all' : `${selected.length} of ${count} selected`}
      </label>
      {selected.length > 0 && <BulkActions selected={selected} commands={commands} />}
    </div>
  )
}
