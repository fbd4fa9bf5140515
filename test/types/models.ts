import {
  listModels,
  type Model,
  modelCacheFolder,
  modelInfo,
  modelNames,
  type ModelSummary,
  pullModel,
  removeModel,
  requireModel,
  resolveModel,
  verifyModel,
} from 'stemwork/models'
import { expectType } from './expect-type.js'

expectType<readonly string[]>()(modelNames)
expectType<string>()(modelCacheFolder())

export async function use(): Promise<void> {
  expectType<ModelSummary[]>()(await listModels())
  expectType<ModelSummary>()(await modelInfo('htdemucs'))
  expectType<Model>()(
    await pullModel('htdemucs', {
      acceptLicence: true,
      onProgress: ({ bytesDone }) => expectType<number>()(bytesDone),
    }),
  )
  expectType<Model>()(await resolveModel('embedded'))
  expectType<Model>()(await verifyModel('htdemucs'))
  expectType<boolean>()(await removeModel('htdemucs'))
  await requireModel('htdemucs', 'cache')
  // @ts-expect-error: a model is named
  await pullModel()
  // @ts-expect-error: no such option
  await pullModel('htdemucs', { acceptLicense: true })
}
