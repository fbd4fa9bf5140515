import { useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import { SelectFilter } from '../elements/filter-controls.js'
import type { NamedLoop } from './kept-songs.js'
import type { Loop } from '../player/player.js'
import { clock } from '../words/words.js'

interface LoopsProps {
  loop: Loop | undefined
  loops: readonly NamedLoop[]
  onLoop(loop: Loop | undefined): void
  onKeep(loops: NamedLoop[]): void
}

const mostLoops = 50
const longestName = 60

/** The current loop, and the loops that were kept by name. */
export function Loops({ loop, loops, onLoop, onKeep }: LoopsProps) {
  const [name, setName] = useState('')
  const chosen = loops.findIndex(({ from, to }) => from === loop?.from && to === loop.to)
  const keep = () => {
    if (!loop) return
    const named = { ...loop, name: name.trim() || `${clock(loop.from)} to ${clock(loop.to)}` }
    onKeep([...loops, named].sort((one, other) => one.from - other.from).slice(0, mostLoops))
    setName('')
  }
  return (
    <span class="actions">
      {loops.length > 0 && (
        <SelectFilter
          label="Kept loops"
          all="No kept loop"
          choices={loops.map((one, index) => [String(index), one.name])}
          chosen={chosen < 0 ? undefined : String(chosen)}
          onChange={(index) => onLoop(index === undefined ? undefined : loops[Number(index)])}
        />
      )}
      {loop && chosen >= 0 && (
        <Button class="plain" onClick={() => onKeep(loops.filter((_, index) => index !== chosen))}>
          Forget this loop
        </Button>
      )}
      {loop && chosen < 0 && (
        <>
          <input
            type="text"
            aria-label="Name of the loop"
            placeholder="Name of the loop"
            maxLength={longestName}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
            onKeyDown={(event) => event.key === 'Enter' && keep()}
          />
          <Button class="plain" onClick={keep}>
            Keep loop
          </Button>
        </>
      )}
      {loop && (
        <Button class="plain" onClick={() => onLoop(undefined)}>
          Remove loop
        </Button>
      )}
    </span>
  )
}
