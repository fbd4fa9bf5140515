import { useState } from 'preact/hooks'
import type { Refusals } from '../options/choices.js'
import type { Client } from '../service/page-client.js'
import { whenUsed } from '../when-used.js'
import { WorkflowChoice, type WorkflowChoiceProps } from '../options/workflow-choice.js'

const OptionFields = whenUsed(({ OptionFields }) => OptionFields)
const OptionCount = whenUsed(({ OptionCount }) => OptionCount, <></>)

interface JobChoicesProps extends WorkflowChoiceProps {
  client: Client
  refusals: Refusals
}

/** Options for the next songs, as far as the service offers a choice. */
export function JobChoices({ workflows, ...of }: JobChoicesProps) {
  const [isOpened, setOpened] = useState(false)
  const { choices, onChange } = of
  const isSet = Object.values(choices.settings[choices.workflow] ?? {}).some((value) => value !== undefined)

  return (
    <>
      <WorkflowChoice workflows={workflows} choices={choices} onChange={onChange} />
      <details class="choices" onToggle={() => setOpened(true)}>
        <summary>Options{isSet && <OptionCount {...of} />}</summary>
        <div class="fields">{(isOpened || isSet) && <OptionFields {...of} />}</div>
      </details>
    </>
  )
}
