/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * DMA alias of SVM's device private memory
 */
#ifndef KFD_ALIAS_H_
#define KFD_ALIAS_H_

struct amdgpu_device;
struct svm_range_bo;

#if IS_ENABLED(CONFIG_HSA_AMD_SVM)
void svm_alias_init(struct amdgpu_device *adev);
void svm_alias_first_show(struct amdgpu_device *adev);
void svm_alias_show(struct amdgpu_device *adev);
void svm_alias_hide(struct amdgpu_device *adev);
void svm_alias_add_bo(struct svm_range_bo *svm_bo);
void svm_alias_del_bo(struct svm_range_bo *svm_bo);
#else
static inline void svm_alias_show(struct amdgpu_device *adev)
{
}

static inline void svm_alias_hide(struct amdgpu_device *adev)
{
}
#endif

#endif /* KFD_ALIAS_H_ */
