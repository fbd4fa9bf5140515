import { setPriority } from 'node:os'
import { openAudio } from '../decode/open-audio.js'
import { collectLevels } from './levels.js'
import { peaksJson } from './peaks-json.js'

// Prints the peaks of the file that the argument names. Jobs and requests come first.
setPriority(10)
const [, , path = ''] = process.argv
const levels = await collectLevels(await openAudio(path, {}))
process.stdout.write(peaksJson(levels))
