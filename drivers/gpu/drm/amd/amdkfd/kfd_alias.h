/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * DMA alias of SVM's device private memory
 */
#ifndef KFD_ALIAS_H_
#define KFD_ALIAS_H_

#include <linux/bits.h>

struct amdgpu_device;

/* Why peers get no access. Each is set and cleared on its own. */
#define SVM_ALIAS_RESET		BIT(0)	/* the device is being reset */
#define SVM_ALIAS_CLOSED	BIT(1)	/* its memory is closed */
#define SVM_ALIAS_GONE		BIT(2)	/* the device is being removed */
#define SVM_ALIAS_ERROR		BIT(3)	/* the PCI core deals with an error */

#if IS_ENABLED(CONFIG_HSA_AMD_SVM)
void svm_alias_early_init(struct amdgpu_device *adev);
void svm_alias_init(struct amdgpu_device *adev);
void svm_alias_first_show(struct amdgpu_device *adev);
void svm_alias_show(struct amdgpu_device *adev, unsigned int why);
void svm_alias_hide(struct amdgpu_device *adev, unsigned int why);
void svm_alias_fill(struct amdgpu_device *adev, const unsigned long *dst,
		    unsigned long npages);
#else
static inline void svm_alias_early_init(struct amdgpu_device *adev)
{
}

static inline void svm_alias_show(struct amdgpu_device *adev, unsigned int why)
{
}

static inline void svm_alias_hide(struct amdgpu_device *adev, unsigned int why)
{
}
#endif

#endif /* KFD_ALIAS_H_ */
