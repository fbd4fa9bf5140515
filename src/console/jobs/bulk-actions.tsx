import { Button } from '../elements/button.js'
import { hasEnded } from '../../client/client.js'
import type { JobCommands } from './job-commands.js'
import type { Place } from './job-list.js'
import { useMessages } from '../elements/messages.js'

/** Most songs that the service puts into one ZIP file. */
const mostArchived = 100

/** Actions on several songs. */
export function BulkActions({ selected, commands }: { selected: readonly Place[]; commands: JobCommands }) {
  const { show } = useMessages()
  const done = selected.filter(({ status }) => status === 'SUCCEEDED')
  const failed = selected.filter(({ status }) => status === 'FAILED')
  const active = selected.filter((job) => !hasEnded(job))
  const archive = () => {
    if (done.length > mostArchived) show({ text: `A ZIP file holds at most ${mostArchived} songs. Select fewer.` })
    else void commands.archive(done)
  }
  return (
    <span class="flow">
      {done.length > 0 && <Button onClick={archive}>Download (ZIP)</Button>}
      {failed.length > 0 && <Button onClick={() => void commands.again(failed)}>Send again</Button>}
      {active.length > 0 && <Button onClick={() => void commands.stop(active)}>Stop</Button>}
      <Button onClick={() => commands.remove(selected)}>Delete</Button>
    </span>
  )
}
