import { StemworkError } from '../errors.js'
import { maxEventCharacters, stepNameSchema } from '../job/step.js'

interface StepEvent {
  id: string
  /** Name of the step that waits for it. */
  name: string
  value: unknown
}

/** @throws StemworkError `INVALID_PARAMS` for a name that no step can have, or a value that is not JSON or too long */
export function checkEvent({ id, name, value }: StepEvent): StepEvent {
  if (!stepNameSchema.safeParse(name).success)
    throw new StemworkError('INVALID_PARAMS', `No step has the name ${JSON.stringify(name)}. Name the one that waits.`)
  const json = jsonOf(value)
  if (json === undefined || json.length > maxEventCharacters)
    throw new StemworkError(
      'INVALID_PARAMS',
      `The event ${name} is not JSON, or longer than ${maxEventCharacters} characters. Send a reference to more.`,
    )
  return { id, name, value: JSON.parse(json) }
}

function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
