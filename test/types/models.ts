import {
  type AddressCheck,
  bestModel,
  checkAddresses,
  listModels,
  type Model,
  listPresets,
  modelCacheFolder,
  modelInfo,
  modelNames,
  modelPreset,
  modelsOfPreset,
  type ModelSummary,
  type ModelPreset,
  presetWorkflow,
  pullModel,
  removeModel,
  requireModel,
  resolveModel,
  verifyModel,
} from 'stemwork/models'
import { expectType } from './expect-type.js'

expectType<string>()(modelCacheFolder())
expectType<string>()(bestModel({ commercial: true, fast: true }))

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
  for await (const check of checkAddresses(['htdemucs'])) expectType<AddressCheck>()(check)
  // @ts-expect-error: a model is named
  await pullModel()
  // @ts-expect-error: no such option
  await pullModel('htdemucs', { acceptLicense: true })
}

expectType<readonly ModelPreset[]>()(listPresets({ commercial: true }))
expectType<string>()(presetWorkflow('lead-and-backing', { commercial: false, format: 'flac' }).id)

expectType<'Renamed: listModels()'>()(modelNames)
expectType<'Renamed: listPresets()'>()(modelPreset)
expectType<'Renamed: models and next of listPresets()'>()(modelsOfPreset)
expectType<'Renamed: resolveModel(name)'>()(requireModel)
